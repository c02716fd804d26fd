import { Client } from 'pg'
import { splitHosts } from '../../shared/database-hosts.ts'
import { unavailable } from '../engine/errors.ts'

/** For one server, so that the next one has its turn soon. */
const connectMs = 1_000
const searchIntervalMs = 500

/** A server that only reads refused a write. */
const readOnlyCode = '25006'

/** Connections to one server. */
type Connected = { close(): Promise<void> }

/**
 * Keeps the connections to the server of a URL that takes writes. If the URL names several, another one is looked for after
 * failures: after a failover all connections are replaced, since those to the old primary may still read. So are those to
 * a server that refused a write, once it takes writes: a session stays read-only if it began while the server was, and
 * behind one address there may be another server now.
 *
 * @param connect opens connections to one server; they are made when they are needed
 */
export function createPrimary<C extends Connected>(url: string, connect: (url: string) => C) {
  const hosts = splitHosts(url)
  const [only] = hosts
  let current = hosts.length === 1 && only !== undefined ? { url: only, connected: connect(only) } : undefined
  let searching: Promise<C> | undefined
  let searchedAt = -Infinity
  let isReadOnly = false
  let isClosed = false

  async function search(): Promise<C> {
    const found = await findPrimary(hosts)
    if (isClosed || found === undefined) throw unavailable('POSTGRES_NO_PRIMARY')
    if (current?.url === found && !isReadOnly) return current.connected
    isReadOnly = false
    // It waits for the calls that it serves, which the answer's time-out ends.
    void current?.connected.close().catch(() => {})
    current = { url: found, connected: connect(found) }
    return current.connected
  }

  function searchOnce(): Promise<C> {
    searchedAt = performance.now()
    return (searching ??= search().finally(() => (searching = undefined)))
  }

  return {
    /** @throws UNAVAILABLE no server takes writes */
    connected: (): Promise<C> => (current ? Promise.resolve(current.connected) : searchOnce()),
    /** Looks for the server that takes writes after a failure. @param code the driver's */
    suspect(code: string): void {
      isReadOnly ||= code === readOnlyCode
      if ((hosts.length === 1 && !isReadOnly) || performance.now() - searchedAt < searchIntervalMs) return
      searchOnce().catch(() => {})
    },
    async close(): Promise<void> {
      isClosed = true
      await current?.connected.close()
    },
  }
}

/** @returns the URL of the first server that takes writes */
async function findPrimary(hosts: readonly string[]): Promise<string | undefined> {
  for (const url of hosts) {
    const client = new Client({
      connectionString: url,
      connectionTimeoutMillis: connectMs,
      query_timeout: connectMs,
    })
    client.on('error', () => {})
    try {
      await client.connect()
      if (await takesWrites(client)) return url
    } catch {
      // The next one may.
    } finally {
      await client.end().catch(() => {})
    }
  }
  return undefined
}

/** Whether a server takes writes: it is no standby, and not set to be read-only. */
export async function takesWrites(client: Pick<Client, 'query'>): Promise<boolean> {
  const { rows } = await client.query<{ transaction_read_only: string }>('show transaction_read_only')
  return rows[0]?.transaction_read_only === 'off'
}
