import type { ProjectWithCount, Project, ProjectChanges } from '../model/project.ts'

/** Methods with a `developerId` find only that developer's projects. */
export type ProjectStore = {
  find(developerId: string, id: string): Promise<ProjectWithCount | undefined>
  /** Lists newest first. @param before an id; lists older projects only */
  list(developerId: string, limit: number, before?: string): Promise<ProjectWithCount[]>
  count(developerId: string): Promise<number>
  insert(project: Project): Promise<void>
  update(developerId: string, id: string, changes: ProjectChanges, now: number): Promise<boolean>
  /** Locks the project until the transaction ends, so that no application is added concurrently. */
  lock(id: string): Promise<void>
  /** Deletes the project unless it has applications. */
  deleteIfEmpty(developerId: string, id: string): Promise<boolean>
}
