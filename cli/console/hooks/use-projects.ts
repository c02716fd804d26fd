import { listProjects } from '../../client/find.ts'
import type { Project } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { slowPollMs, usePolled, type Polled } from './use-polled.ts'

/** Polls every project of the developer, newest first. */
export function useProjects(): Polled<Project[]> {
  const { api } = useConsole()
  return usePolled('projects', () => listProjects(api), { intervalMs: slowPollMs })
}
