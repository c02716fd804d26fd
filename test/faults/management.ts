import type { Database } from 'bun:sqlite'
import type { TestApp } from '../helpers/webhook-client.ts'
import { encodeRequest, openConnection, type Connection } from './connection.ts'

type Project = { name: string; maybeName?: string; deleted: boolean; maybeDeleted: boolean }

/** The keys of an application that are rotated over and over. */
type RotatedKeys = { app: TestApp; previous: string | undefined; isUncertain: boolean }

export type Management = ReturnType<typeof createManagement>

/**
 * What developers change in the console, and what they were told of it: projects that are made, renamed and deleted,
 * and an application whose API key is rotated.
 *
 * @param token of a developer
 * @param app one that nobody else uses
 */
export function createManagement(token: string, app: TestApp) {
  const projects = new Map<string, Project>()
  const keys: RotatedKeys = { app, previous: undefined, isUncertain: false }
  const count = { created: 0, renamed: 0, deleted: 0, rotated: 0 }
  const bearer = { authorization: `Bearer ${token}` }
  let nextNumber = 0

  /** Whether it was acknowledged; `data` of the answer. */
  async function call(connection: Connection, method: string, path: string, body?: object) {
    const response = await connection.send(encodeRequest(method, path, bearer, body))
    if (!response || response.status === 503) return undefined
    if (response.status >= 300)
      throw new Error(`${method} ${path} was answered ${response.status} ${response.body}`)
    // Of a server of ours; no body comes with 204.
    return response.body === '' ? {} : (JSON.parse(response.body) as { data: Record<string, string> }).data
  }

  async function create(connection: Connection) {
    const name = `project ${nextNumber++}`
    const created = await call(connection, 'POST', '/v1/projects', { name })
    if (!created?.['id']) return
    projects.set(created['id'], { name, deleted: false, maybeDeleted: false })
    count.created++
  }

  async function rename(connection: Connection, id: string, project: Project) {
    const name = `renamed ${nextNumber++}`
    project.maybeName = name
    if ((await call(connection, 'PATCH', `/v1/projects/${id}`, { name })) === undefined) return
    project.name = name
    delete project.maybeName
    count.renamed++
  }

  async function remove(connection: Connection, id: string, project: Project) {
    project.maybeDeleted = true
    if ((await call(connection, 'DELETE', `/v1/projects/${id}`)) === undefined) return
    project.deleted = true
    count.deleted++
  }

  async function rotate(connection: Connection) {
    keys.isUncertain = true
    const rotated = await call(connection, 'POST', `/v1/applications/${app.id}/rotate/api`)
    if (!rotated?.['value']) return
    keys.previous = keys.app.headers['x-api-key']
    keys.app = { ...app, headers: { ...app.headers, 'x-api-key': rotated['value'] } }
    keys.isUncertain = false
    count.rotated++
  }

  return {
    count,

    /** Goes on until the connection ends. @param stopped asked before each change */
    async run(url: string, stopped: () => boolean) {
      const connection = await openConnection(url).catch(() => undefined)
      if (!connection) return
      while (!stopped() && !connection.isClosed()) {
        await rotate(connection)
        await create(connection)
        const activeProjects = [...projects].filter(
          ([, { maybeDeleted, maybeName }]) => !maybeDeleted && !maybeName,
        )
        const [first, second] = activeProjects
        if (first) await rename(connection, ...first)
        if (second && activeProjects.length > 5) await remove(connection, ...second)
      }
      connection.close()
    },

    /** Whether the database has what was acknowledged. @returns what it has not */
    check(database: Database): string[] {
      const find = database.query<{ name: string }, [string]>('select name from projects where id = ?')
      const violations: string[] = []
      for (const [id, project] of projects) {
        const row = find.get(id)
        if (row === null) {
          if (!project.maybeDeleted) violations.push(`project ${id} is gone`)
          project.deleted = true
          continue
        }
        if (project.deleted) violations.push(`project ${id} was deleted and is there`)
        if (row.name !== project.name && row.name !== project.maybeName) {
          violations.push(`project ${id} was named ${project.name} and is ${row.name}`)
        }
        project.name = row.name
        delete project.maybeName
        if (!project.deleted) project.maybeDeleted = false
      }
      return violations
    },

    /** Whether the last key works and the one before does not. @returns where it is otherwise */
    async checkKeys(url: string): Promise<string[]> {
      const connection = await openConnection(url)
      const path = '/v1/users/%2B14155550100'
      const statusForKey = async (key: string) =>
        (await connection.send(encodeRequest('GET', path, { 'x-api-key': key })))?.status
      const status = await statusForKey(keys.app.headers['x-api-key'] ?? '')
      const previousKeyStatus = keys.previous === undefined ? 401 : await statusForKey(keys.previous)
      connection.close()
      const violations: string[] = []
      // A rotation that nobody answered may have been made.
      if (status !== 404 && !(keys.isUncertain && status === 401))
        violations.push(`the last key is answered ${status}`)
      if (previousKeyStatus !== 401)
        violations.push(`the key before the last is answered ${previousKeyStatus}`)
      return violations
    },
  }
}
