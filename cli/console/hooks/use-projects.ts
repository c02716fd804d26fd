import { listProjects } from '../../client/find.ts'
import type { DeveloperProfile, Project } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { slowPollMs, usePolled, type Polled } from './use-polled.ts'

/** Polls every project of the developer, newest first. */
export function useProjects(): Polled<Project[]> {
  const { api } = useConsole()
  return usePolled('projects', () => listProjects(api), { intervalMs: slowPollMs })
}

/** Polls the developer's plan and its limits; null until they are loaded. */
export function usePlan(): Pick<DeveloperProfile, 'plan' | 'limits'> | null {
  const { api } = useConsole()
  const developer = usePolled(
    'developer',
    async () => (await api.asDeveloper('GET', '/v1/developer/me')).data,
    { intervalMs: 30_000 },
  )
  return developer.data ?? null
}
