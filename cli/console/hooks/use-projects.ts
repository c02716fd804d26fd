import { useState } from 'react'
import { listProjects } from '../../find.ts'
import type { DeveloperProfile, Project } from '../../resources.ts'
import { useConsole } from '../console-context.ts'
import { useLive, type Live } from './use-live.ts'

/** More than one page of them is not asked for every two seconds. */
const manyProjects = 200

/** Every project of the developer, newest first. */
export function useProjects(): Live<Project[]> {
  const { api } = useConsole()
  const [everyMs, setEveryMs] = useState(2000)
  const projects = useLive('projects', () => listProjects(api), { everyMs })
  const wantedMs = (projects.data?.length ?? 0) > manyProjects ? 20_000 : 2000
  if (wantedMs !== everyMs) setEveryMs(wantedMs)
  return projects
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
