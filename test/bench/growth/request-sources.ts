import type { Database, SQLQueryBindings } from 'bun:sqlite'
import type { NewId } from '../../../src/domain/model/ids.ts'

/** The busy developer. The first and the second application have a fifth of the developer's requests each. */
export type Owner = { developerId: string; applicationIds: readonly string[] }

/** Owner of a request. */
export type Source = {
  developerId: string
  projectId: string
  appId: string
  /** True if all its requests are verified. */
  alwaysSucceeds: boolean
}

export type NewRequest = { source: Source; phone: string }

const otherDevelopers = 399
const applicationsEach = 4
const ownerShare = 0.2

/** Adds the other developers. Chooses the source and phone of the next request; there are a third as many phones. */
export function createRequestSources(db: Database, newId: NewId, owner: Owner, requests: number) {
  const project = db
    .query<{ project_id: string }, [string]>('select project_id from applications where id = ?')
    .get(owner.applicationIds[0] ?? '')
  if (!project) throw new Error('the busy developer has no application')
  const ownSources = owner.applicationIds.map((appId, index) => ({
    developerId: owner.developerId,
    projectId: project.project_id,
    appId,
    alwaysSucceeds: index === 1,
  }))
  const otherSources = Array.from({ length: otherDevelopers }, (_, index) =>
    addDeveloper(db, newId, ownSources[0], index),
  )
  const ownPhones = Math.ceil((requests * ownerShare) / 3)
  const otherPhones = Math.ceil((requests * (1 - ownerShare)) / otherDevelopers / 3)

  return {
    pickRequest(): NewRequest {
      const index = Math.floor(Math.random() * otherDevelopers)
      const isOwner = Math.random() < ownerShare
      const sources = isOwner ? ownSources : (otherSources[index] ?? ownSources)
      const position = isOwner && Math.random() < 0.4 ? Math.random() * 2 : Math.random() * sources.length
      const source = sources[Math.floor(position)]
      if (!source) throw new Error('a developer without an application')
      const phone = Math.floor(Math.random() * (isOwner ? ownPhones : otherPhones))
      // Phones in no order, like real ones.
      return { source, phone: `+1415${2_000_000 + (((phone + index * 7919) * 3_000_017) % 8_000_000)}` }
    },
  }
}

function addDeveloper(db: Database, newId: NewId, template: Source | undefined, index: number): Source[] {
  if (!template) throw new Error('the busy developer has no application')
  const developerId = newId('dev')
  const projectId = newId('prj')
  copyRow(db, 'developers', template.developerId, {
    id: developerId,
    subject: developerId,
    email: `developer-${index}@example.com`,
    virtual_phone: `+1500${1_000_000 + index}`,
  })
  copyRow(db, 'projects', template.projectId, { id: projectId, developer_id: developerId })
  return Array.from({ length: applicationsEach }, () => {
    const appId = newId('app')
    copyRow(db, 'applications', template.appId, {
      id: appId,
      developer_id: developerId,
      project_id: projectId,
      // A sealed one can be opened only in the row that it was sealed for; plain ones are of 0.1.0.
      webhook_secret: 'whsec_bench',
    })
    return { developerId, projectId, appId, alwaysSucceeds: false }
  })
}

function copyRow(db: Database, table: string, id: string, changes: Record<string, SQLQueryBindings>): void {
  const columns = db
    .query<{ name: string }, []>(`select name from pragma_table_info('${table}')`)
    .all()
    .map(({ name }) => name)
  const values = columns.map((name) => (name in changes ? '?' : name))
  const names = columns.filter((name) => name in changes)
  db.run(`insert into ${table} (${columns.join()}) select ${values.join()} from ${table} where id = ?`, [
    ...names.map((name) => changes[name] ?? null),
    id,
  ])
}
