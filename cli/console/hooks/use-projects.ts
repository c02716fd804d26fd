import { listProjects } from '../../client/find.ts'
import type { DeveloperProfile, Project } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { calmlyMs, useLive, type Live } from './use-polled.ts'

/** Every project of the developer, newest first. */
export function useProjects(): Live<Project[]> {
  const { api } = useConsole()
  return useLive('projects', () => listProjects(api), { everyMs: calmlyMs })
}

/** How much the plan allows; null until that is known. */
export function usePlan(): Pick<DeveloperProfile, 'plan' | 'limits'> | null {
  const { api } = useConsole()
  const developer = useLive(
    'developer',
    async () => (await api.asDeveloper('GET', '/v1/developer/me')).data,
    { everyMs: 30_000 },
  )
  return developer.data ?? null
}
