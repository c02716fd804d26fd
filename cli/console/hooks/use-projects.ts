import { listProjects } from '../../client/find.ts'
import type { DeveloperProfile, Project } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { slowPollMs, usePolled, type Polled } from './use-polled.ts'

/** Every project of the developer, newest first. */
export function useProjects(): Polled<Project[]> {
  const { api } = useConsole()
  return usePolled('projects', () => listProjects(api), { intervalMs: slowPollMs })
}

/** How much the plan allows; null until that is known. */
export function usePlan(): Pick<DeveloperProfile, 'plan' | 'limits'> | null {
  const { api } = useConsole()
  const developer = usePolled(
    'developer',
    async () => (await api.asDeveloper('GET', '/v1/developer/me')).data,
    { intervalMs: 30_000 },
  )
  return developer.data ?? null
}
