import { createContext, useContext, useMemo } from 'react'
import { listApplications } from '../../client/find.ts'
import type { Application } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { useOnlyEnvironment } from './use-shell.ts'
import { slowPollMs, usePolled, type Polled } from './use-polled.ts'

type Applications = Polled<Application[]> & {
  /** Returns the name of an application; its id if it was deleted, `-` for null. */
  applicationName(id: string | null): string
  /** Returns the name of the application of a row, for a column. */
  applicationCell(row: { appId: string | null }): string
}

export const ApplicationsContext = createContext<Applications>({
  data: undefined,
  error: null,
  applicationName: (id) => id ?? '-',
  applicationCell: ({ appId }) => appId ?? '-',
})

/** Returns every application of the developer. All components share one poll. */
export const useApplications = () => useContext(ApplicationsContext)

/** Returns the rows whose application belongs to the environment that is shown; they need the applications, too. */
export function useRowsShown<Row extends { appId: string | null }>(rows: Polled<Row[]>): Polled<Row[]> {
  const environment = useOnlyEnvironment()
  const { data: applications, error } = useApplications()
  if (environment === undefined || rows.data === undefined) return rows
  if (applications === undefined) return { data: undefined, error }
  const shown = applications.filter((one) => one.environment === environment).map(({ id }) => id)
  return { ...rows, data: rows.data.filter(({ appId }) => appId !== null && shown.includes(appId)) }
}

/** Polls the applications; called once, by the root component. */
export function usePolledApplications(): Applications {
  const { api } = useConsole()
  const { data, error } = usePolled('applications', () => listApplications(api), { intervalMs: slowPollMs })
  return useMemo(() => {
    const names = new Map((data ?? []).map(({ id, name }) => [id, name]))
    const applicationName = (id: string | null) => (id === null ? '-' : (names.get(id) ?? id))
    return { data, error, applicationName, applicationCell: ({ appId }) => applicationName(appId) }
  }, [data, error])
}
