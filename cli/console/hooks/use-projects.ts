import { listProjects } from '../../client/find.ts'
import type { DeveloperProfile, Project } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { slowPollMs, usePolled, type Polled } from './use-polled.ts'
import { useResource } from './use-resource.ts'

/** Polls every project of the developer, newest first. */
export function useProjects(): Polled<Project[]> {
  const { api } = useConsole()
  return usePolled('projects', () => listProjects(api), { intervalMs: slowPollMs })
}

/** Polls the developer's plan and its limits; null until they are loaded. */
export const usePlan = (): Pick<DeveloperProfile, 'plan' | 'limits'> | null =>
  useResource('/v1/developer/me', {}, { intervalMs: 30_000 }).data ?? null
