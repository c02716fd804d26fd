import { createContext, useContext, useMemo } from 'react'
import { listApplications } from '../../client/find.ts'
import type { Application } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { calmlyMs, useLive, type Live } from './use-polled.ts'

export type Applications = Live<Application[]> & {
  /** The application's name; its id where it was deleted, `-` where there is none. */
  nameOf(id: string | null): string
}

export const ApplicationsContext = createContext<Applications>({
  data: undefined,
  error: null,
  nameOf: (id) => id ?? '-',
})

/** Every application of the developer. Asked once for all that is on the screen. */
export const useApplications = () => useContext(ApplicationsContext)

/** For the shell, which asks. */
export function useAskedApplications(): Applications {
  const { api } = useConsole()
  const { data, error } = useLive('applications', () => listApplications(api), { everyMs: calmlyMs })
  return useMemo(() => {
    const names = new Map((data ?? []).map(({ id, name }) => [id, name]))
    return { data, error, nameOf: (id) => (id === null ? '-' : (names.get(id) ?? id)) }
  }, [data, error])
}
