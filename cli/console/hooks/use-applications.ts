import { createContext, useContext, useMemo } from 'react'
import { listApplications } from '../../client/find.ts'
import type { Application } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { slowPollMs, usePolled, type Polled } from './use-polled.ts'

export type Applications = Polled<Application[]> & {
  /** The application's name; its id where it was deleted, `-` where there is none. */
  applicationName(id: string | null): string
}

export const ApplicationsContext = createContext<Applications>({
  data: undefined,
  error: null,
  applicationName: (id) => id ?? '-',
})

/** Every application of the developer. Asked once for all that is on the screen. */
export const useApplications = () => useContext(ApplicationsContext)

/** For the shell, which asks. */
export function usePolledApplications(): Applications {
  const { api } = useConsole()
  const { data, error } = usePolled('applications', () => listApplications(api), { intervalMs: slowPollMs })
  return useMemo(() => {
    const names = new Map((data ?? []).map(({ id, name }) => [id, name]))
    return { data, error, applicationName: (id) => (id === null ? '-' : (names.get(id) ?? id)) }
  }, [data, error])
}
