import type { Database } from 'bun:sqlite'

type Item = { id: string; appId: string; status: string }
type Entry = { id: string; appId: string; type: string }
type Page<T> = { data?: T[]; pagination?: { nextCursor: string | null } }

/** States of a request that no time changes. */
const finalStatuses = ['verified', 'failed']

/**
 * Compares the lists of the API with the rows and with one another: each row is in the list of all, in its application's
 * list and in its status's list, once and in the same order. No call may change a request meanwhile.
 *
 * @param token ID token of the developer who has every application of the database
 * @returns the differences
 */
export async function checkLists(url: string, token: string, database: Database): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}` }
  const violations: string[] = []
  const readAll = async <T>(path: string): Promise<T[]> => {
    const items: T[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const response = await fetch(`${url}${path}${cursor && `&cursor=${cursor}`}`, { headers })
      // The server is the one under test; without these fields it refused.
      const { data, pagination } = (await response.json()) as Page<T>
      if (!data || !pagination) {
        violations.push(`${path}: ${response.status}`)
        return items
      }
      items.push(...data)
      cursor = pagination.nextCursor
    }
    return items
  }
  const compare = (name: string, listed: readonly string[], expected: readonly string[]) => {
    if (listed.join() === expected.join()) return
    const listedIds = new Set(listed)
    const missing = expected.filter((id) => !listedIds.has(id)).length
    violations.push(`${name}: ${listed.length} of ${expected.length} are listed, ${missing} are missing`)
  }
  const ids = (items: readonly { id: string }[]) => items.map(({ id }) => id)

  const requests = await readAll<Item>('/v1/otp?limit=200')
  const stored = database.query<{ id: string }, []>('select id from otp_requests order by id').all()
  compare('requests', ids(requests).toSorted(), ids(stored))
  for (const status of finalStatuses) {
    const expected = ids(requests.filter((one) => one.status === status))
    compare(`requests, ${status}`, ids(await readAll<Item>(`/v1/otp?limit=200&status=${status}`)), expected)
  }
  const entries = await readAll<Entry>('/v1/logs?order=desc&limit=200')
  const entryCount = database.query<{ n: number }, []>('select count(*) as n from events').get()?.n ?? 0
  if (entries.length !== entryCount) violations.push(`log: ${entries.length} of ${entryCount} are listed`)
  for (const type of new Set(entries.map((entry) => entry.type))) {
    const expected = ids(entries.filter((entry) => entry.type === type))
    compare(`log, ${type}`, ids(await readAll<Entry>(`/v1/logs?order=desc&limit=200&type=${type}`)), expected)
  }
  for (const appId of new Set(requests.map((one) => one.appId))) {
    const own = <T extends { id: string; appId: string }>(all: readonly T[]) =>
      ids(all.filter((one) => one.appId === appId))
    compare(
      `requests of ${appId}`,
      ids(await readAll<Item>(`/v1/otp?limit=200&appId=${appId}`)),
      own(requests),
    )
    compare(
      `log of ${appId}`,
      ids(await readAll<Entry>(`/v1/logs?order=desc&limit=200&appId=${appId}`)),
      own(entries),
    )
  }
  return violations
}
