import type { Database } from 'bun:sqlite'
import type { TestApp } from '../helpers/webhook-client.ts'
import { encodeRequest, openConnection, type Connection } from './connection.ts'

type Project = { name: string; maybeName?: string; deleted: boolean; maybeDeleted: boolean }

/** An application whose API key is rotated repeatedly. */
type RotatedKeys = { app: TestApp; previous: string | undefined; isUncertain: boolean }

export type Management = ReturnType<typeof createManagement>

/**
 * Creates the changes that developers make in the console, and records which were acknowledged: projects are created,
 * renamed and deleted, and the API key of an application is rotated.
 *
 * @param token ID token of a developer
 * @param app application that no other load uses
 */
export function createManagement(token: string, app: TestApp) {
  const projects = new Map<string, Project>()
  const keys: RotatedKeys = { app, previous: undefined, isUncertain: false }
  const count = { created: 0, renamed: 0, deleted: 0, rotated: 0 }
  const bearer = { authorization: `Bearer ${token}` }
  let nextNumber = 0

  /** Makes a call. Returns whether it was acknowledged, and `data` of the response. */
  async function call(connection: Connection, method: string, path: string, body?: object) {
    const response = await connection.send(encodeRequest(method, path, bearer, body))
    if (!response || response.status === 503) return undefined
    if (response.status >= 300)
      throw new Error(`${method} ${path} responded ${response.status} ${response.body}`)
    // The server is the one under test. 204 has no body.
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

    /** Makes changes until the connection ends. @param stopped checked before each change */
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

    /** Compares the database with what was acknowledged. @returns the differences */
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
        if (project.deleted) violations.push(`project ${id} was deleted but exists`)
        if (row.name !== project.name && row.name !== project.maybeName) {
          violations.push(`project ${id} was named ${project.name} and is ${row.name}`)
        }
        project.name = row.name
        delete project.maybeName
        if (!project.deleted) project.maybeDeleted = false
      }
      return violations
    },

    /** Checks that the current key works and the previous one does not. @returns the violations */
    async checkKeys(url: string): Promise<string[]> {
      const connection = await openConnection(url)
      const path = '/v1/users/%2B14155550100'
      const statusForKey = async (key: string) =>
        (await connection.send(encodeRequest('GET', path, { 'x-api-key': key })))?.status
      const status = await statusForKey(keys.app.headers['x-api-key'] ?? '')
      const previousKeyStatus = keys.previous === undefined ? 401 : await statusForKey(keys.previous)
      connection.close()
      const violations: string[] = []
      // A rotation without a response may have been made.
      if (status !== 404 && !(keys.isUncertain && status === 401))
        violations.push(`the current key gets ${status}`)
      if (previousKeyStatus !== 401) violations.push(`the previous key gets ${previousKeyStatus}`)
      return violations
    },
  }
}
