import { Client, types, type ClientConfig } from 'pg'
import { splitHosts } from '../../shared/database-hosts.ts'
import { secondMs } from '../../shared/durations.ts'
import { driverCode } from '../engine/errors.ts'
import { MigrationError } from '../engine/migrations.ts'
import { sessionSettings, toOptions } from './connections.ts'
import { takesWrites } from './primary.ts'
import { StartRefused } from '../data-dir/data-dir.ts'
import { isRecord } from '../../shared/json.ts'
import { explainCode } from '../../shared/error-cause.ts'

/** The database cannot be used now. A supervisor may start the same command again. */
export class DatabaseUnreachable extends StartRefused {
  readonly isUnreachable = true
}

/** Time of one attempt to connect, which a firewall would otherwise draw out. */
const attemptMs = 5_000
const retryMs = 1_000

/**
 * Connects to the database. While the server is away or starting, or takes no writes, tries again every second; a refusal
 * ends it at once.
 *
 * @param options.waitMs how long to try; 0: once
 * @param options.check refuses a server that cannot be used; with DatabaseUnreachable only for now
 * @param options.onWaiting called before each wait, with the reason
 * @throws DatabaseUnreachable it stayed away; StartRefused it refused the connection, or its certificate is not trusted
 */
export async function connectClient(
  url: string,
  options: {
    applicationName: string
    waitMs: number
    check?: (client: Client) => Promise<void>
    onWaiting?: (cause: string) => void
  },
): Promise<Client> {
  const { applicationName, waitMs, check = async () => {}, onWaiting = () => {} } = options
  const endsAt = performance.now() + waitMs
  for (;;) {
    try {
      return await tryConnect(url, { application_name: applicationName }, check)
    } catch (error) {
      const refused = toConnectRefusal(error)
      if (!(refused instanceof DatabaseUnreachable) || performance.now() + retryMs > endsAt) throw refused
      onWaiting(refused.message)
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}

/** Converts the error of a new connection. */
function toConnectRefusal(error: unknown): unknown {
  const code = driverCode(error)
  if (code === '42501') {
    return new StartRefused(
      'the role of the database URL may not connect to the database (42501)',
      'Grant it as the owner of the database: grant connect on database NAME to ROLE.',
    )
  }
  const converted = toStartError(error)
  if (converted !== error || code === undefined) return converted
  return new StartRefused(`the database refused the connection (${code})`, 'The log of its server says why.')
}

type ConnectionSettings = Pick<ClientConfig, 'application_name' | 'options'>

/** Connects to the server of the URL, or to the first of several that takes writes. @throws what the last one answered */
async function tryConnect(
  url: string,
  settings: ConnectionSettings,
  check: (client: Client) => Promise<void> = async () => {},
): Promise<Client> {
  const hosts = splitHosts(url)
  let failure: unknown
  for (const host of hosts) {
    try {
      return await tryHost(host, settings, async (client) => {
        if (hosts.length > 1 && !(await takesWrites(client)))
          throw new DatabaseUnreachable(
            'no server of the database takes writes',
            'Promote one of them, or name the primary server in the URL too.',
          )
        await check(client)
      })
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

async function tryHost(
  url: string,
  settings: ConnectionSettings,
  check: (client: Client) => Promise<void>,
): Promise<Client> {
  const client = new Client({
    connectionString: url,
    ...settings,
    connectionTimeoutMillis: attemptMs,
    keepAlive: true,
    types: {
      getTypeParser: (type: number, format?: 'text' | 'binary') =>
        type === types.builtins.INT8 ? Number : types.getTypeParser(type, format),
    },
  })
  // A connection that breaks while idle; the next query rejects.
  client.on('error', () => {})
  try {
    await client.connect()
    await check(client)
    return client
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
}

/**
 * Tells whether a connection has the options that it is started with. PgBouncer refuses them, or drops them with
 * `ignore_startup_parameters`.
 */
export async function keepsStartupOptions(url: string, applicationName: string): Promise<boolean> {
  const { lock_timeout: expected } = sessionSettings
  let client: Client
  try {
    client = await tryConnect(url, { application_name: applicationName, options: toOptions(sessionSettings) })
  } catch (error) {
    if (driverCode(error) === '08P01') return false
    throw error
  }
  try {
    const { rows } = await client.query<{ kept: boolean }>(
      "select current_setting('lock_timeout') = $1 as kept",
      [expected],
    )
    return rows[0]?.kept === true
  } finally {
    await client.end().catch(() => {})
  }
}

/** Opens a connection for work on the schema, without limits of time. @throws StartRefused */
export const connectTo = (url: string): Promise<Client> =>
  connectClient(url, { applicationName: 'otpd/migrate', waitMs: 0 })

/** Runs `work` on a connection of its own. @throws StartRefused for an expected failure */
export async function withPostgres<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connectTo(url)
  try {
    return await work(client)
  } catch (error) {
    throw toStartError(error)
  } finally {
    await client.end().catch(() => {})
  }
}

/** Errors of the network, and of a server that starts, stops or has too many connections. */
const awayCodes =
  /^(ECONN[A-Z]+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST[A-Z]+|ENET[A-Z]+|08...|53...|55000|57P0.)$/
/** Errors of the driver that have no code. */
const awayMessages = /^(Connection terminated|timeout expired|Client has encountered a connection error)/

/** Names why the database is away; undefined for any other error. Never returns text of the server. */
function awayCause(error: unknown): string | undefined {
  const code = driverCode(error)
  // A Unix socket that is not there yet.
  if (code === 'ENOENT' && isRecord(error) && error['syscall'] === 'connect') return code
  if (code !== undefined) return awayCodes.test(code) ? code : undefined
  if (!(error instanceof Error) || !awayMessages.test(error.message)) return undefined
  return error.message.startsWith('timeout') ? 'ETIMEDOUT' : 'connection lost'
}

/** Refusals of a connection or a statement by SQLSTATE, each with what to do. */
const refusals: ReadonlyArray<readonly [code: RegExp, message: string, remedy: string]> = [
  [
    /^28/,
    'the database refused the user name or the password',
    'Correct them in the URL of the database, or allow this host in pg_hba.conf.',
  ],
  [/^3D000$/, 'the server has no database of that name', 'Create it, or correct the name in the URL.'],
  [
    /^42501$/,
    'the role of the database URL lacks a privilege',
    'Let it use the tables: grant select, insert, update, delete on all tables in schema public.',
  ],
  [
    /^(42P05|26000)$/,
    'a connection pooler does not keep prepared statements',
    'The pooler does not keep statements: OTPD_DATABASE_STATEMENTS=unnamed.',
  ],
  [
    /^25006$/,
    'the database accepts no writes',
    'Name the primary server, and leave default_transaction_read_only off.',
  ],
]

/** Outages by SQLSTATE of a server that can be reached, or by the error of its socket, each with what to do. */
const outages: ReadonlyArray<readonly [code: string, message: string, remedy: string]> = [
  [
    'ETIMEDOUT',
    `the database did not answer within ${attemptMs / secondMs} s`,
    'It may be busy, or a firewall drops the connection: check its load, and host and port in the URL.',
  ],
  ['53100', 'the disk of the database is full', 'Make room on it.'],
  [
    '53300',
    'the database takes no more connections',
    'Raise max_connections of the server, or the limit of the role or the database.',
  ],
  ['55000', 'the database takes no connections', 'Allow them: alter database NAME allow_connections true.'],
  [
    'POSTGRES_NO_ANSWER',
    'the database did not answer in time',
    'Try again. If it goes on, a transaction may keep a table locked: pg_stat_activity shows it.',
  ],
  [
    '55P03',
    'another transaction keeps a table locked',
    'Try again, or end that transaction: pg_stat_activity shows it.',
  ],
]

/** Reasons for which TLS does not trust a certificate. */
const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|ERR_TLS|ERR_SSL|HOSTNAME_MISMATCH/

function unreachable(code: string): DatabaseUnreachable {
  const [, message, remedy] = outages.find(([one]) => one === code) ?? []
  return new DatabaseUnreachable(
    message === undefined ? `the database cannot be reached (${explainCode(code)})` : `${message} (${code})`,
    remedy ?? 'Start it, or correct host and port in the URL of the database.',
  )
}

/**
 * Converts an error of the driver, a connection or a migration to a StartRefused; returns other errors unchanged. Neither
 * text has anything from the URL.
 */
export function toStartError(error: unknown): unknown {
  if (error instanceof StartRefused) return error
  if (error instanceof MigrationError) return new StartRefused(error.message, error.remedy, error)
  const cause = error instanceof Error && error.name === 'ServiceError' ? error.cause : error
  const away = awayCause(cause)
  if (away !== undefined) return unreachable(away)
  const code = driverCode(cause)
  for (const [codes, message, remedy] of refusals) {
    if (code !== undefined && codes.test(code)) return new StartRefused(`${message} (${code})`, remedy)
  }
  // A node that starts while the database does not answer in time, or is lost again.
  if (code !== undefined && (cause !== error || code === '55P03')) return unreachable(code)
  if (code !== undefined && certificateCodes.test(code)) {
    return new StartRefused(
      `the certificate of the database is not trusted (${code})`,
      'Name its authority in the URL with sslrootcert=FILE, and the host as the certificate names it.',
    )
  }
  // Made before the connection, from the files that the URL names.
  if (code === 'ENOENT' || code === 'EACCES' || code === 'EISDIR') {
    return new StartRefused(
      `a file that the URL of the database names cannot be read (${explainCode(code)})`,
      'Correct sslrootcert, sslcert or sslkey, or the permissions of the file.',
    )
  }
  return withoutCode(cause) ?? error
}

/** Errors that the driver makes itself, told apart by their texts. */
function withoutCode(error: unknown): StartRefused | undefined {
  if (!(error instanceof Error)) return undefined
  if (/does not support SSL connections/.test(error.message)) {
    return new StartRefused(
      'the database does not support TLS',
      'Turn TLS on at the server, or set sslmode=disable if the network is yours.',
    )
  }
  if (!error.message.startsWith('SASL')) return undefined
  return new StartRefused(
    'the database asks for a password, and the URL has none that it accepts',
    'Correct the password in the URL of the database.',
  )
}
