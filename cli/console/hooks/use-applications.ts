import { createContext, useContext, useMemo, useState } from 'react'
import { listApplications } from '../../find.ts'
import type { Application } from '../../resources.ts'
import { useConsole } from '../console-context.ts'
import { useLive, type Live } from './use-live.ts'

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

/** More than one page of them is not asked for every two seconds. */
const manyApplications = 200

/** For the shell, which asks. */
export function useAskedApplications(): Applications {
  const { api } = useConsole()
  const [everyMs, setEveryMs] = useState(2000)
  const { data, error } = useLive('applications', () => listApplications(api), { everyMs })
  const wantedMs = (data?.length ?? 0) > manyApplications ? 20_000 : 2000
  if (wantedMs !== everyMs) setEveryMs(wantedMs)
  return useMemo(() => {
    const names = new Map((data ?? []).map(({ id, name }) => [id, name]))
    return { data, error, nameOf: (id) => (id === null ? '-' : (names.get(id) ?? id)) }
  }, [data, error])
}
