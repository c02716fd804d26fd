import { listApplications } from '../../find.ts'
import type { Application } from '../../resources.ts'
import { useConsole } from '../console-context.ts'
import { useLive, type Live } from './use-live.ts'

export type Applications = Live<Application[]> & {
  /** The application's name; its id where it was deleted, `-` where there is none. */
  nameOf(id: string | null): string
}

/** Every application, asked every ten seconds: there may be many, and they change rarely. */
export function useApplications(): Applications {
  const { api } = useConsole()
  const live = useLive('applications', () => listApplications(api), { everyMs: 10_000 })
  return {
    ...live,
    nameOf: (id) => (id === null ? '-' : (live.data?.find((one) => one.id === id)?.name ?? id)),
  }
}
