import { migratePostgres, readPostgresSchema } from './migrate.ts'
import { OperationRefused } from '../data-dir/data-dir.ts'
import { connectClient, connectTo, keepsStartupOptions, toStartError } from './connect.ts'
import { withSnapshot } from './snapshot.ts'
import { requirePrivileges } from './privileges.ts'
import {
  measureClock,
  readServerFacts,
  requireNamedStatements,
  requireSafeServer,
  requireSameTime,
  requireTransactions,
} from './server-checks.ts'

type PrepareOptions = {
  url: string
  applicationName: string
  statements: 'named' | 'unnamed'
  isUnsafe: boolean
  /** False: refuses an older database. */
  migrate: boolean
  /** True: refuses an empty database, and needs no privilege but to read. */
  mustExist?: boolean
  /** How long to wait for a server that is away. */
  waitMs: number
  /** This node's time. */
  now(): number
  /** Called before each wait. */
  onWaiting?(cause: string): void
}

type Prepared = {
  /** Names of the migrations that were applied to an existing database. */
  migrated: string[]
  /** How far the server's clock is ahead of this node's, in milliseconds. */
  clockAheadMs: number
  /** The difference of the clocks in words, if it should be reported. */
  clockWarning: string | undefined
  /** See `PostgresOptions`. False with unnamed statements, which mean a connection pooler. */
  keepsOptions: boolean
}

/**
 * Checks the server of a shared database, and migrates the database if needed.
 *
 * @throws StartRefused with the cause and a remedy; DatabaseUnreachable the server stayed away; OperationRefused
 *   (NO_DATABASE) the database is empty
 */
export async function prepareSharedDatabase(options: PrepareOptions): Promise<Prepared> {
  const { url, applicationName, onWaiting } = options
  const client = await connectClient(url, {
    applicationName,
    waitMs: options.waitMs,
    check: async (candidate) => requireSafeServer(await readServerFacts(candidate), options.isUnsafe),
    ...(onWaiting && { onWaiting }),
  })
  try {
    const clockAheadMs = await measureClock(client, options.now)
    const clockWarning = requireSameTime(clockAheadMs)
    await requireTransactions(client)
    const isNamed = options.statements === 'named'
    if (isNamed) {
      const other = await connectClient(url, { applicationName, waitMs: 0 })
      await requireNamedStatements(client, other).finally(() => other.end().catch(() => {}))
    }
    // A migration would wait for a locked table silently.
    const { applied } = await withSnapshot(client, () => readPostgresSchema(client))
    if (options.mustExist) requireExisting(applied)
    const { isNew, migrated } = await migratePostgres(client, {
      migrate: options.migrate,
      connect: () => connectTo(url),
    })
    if (!options.mustExist) await requirePrivileges(client)
    const keepsOptions = isNamed && (await keepsStartupOptions(url, applicationName))
    return { migrated: isNew ? [] : migrated, clockAheadMs, clockWarning, keepsOptions }
  } catch (error) {
    throw toStartError(error)
  } finally {
    await client.end().catch(() => {})
  }
}

function requireExisting(applied: readonly unknown[]): void {
  if (applied.length > 0) return
  throw new OperationRefused(
    'NO_DATABASE',
    'the database is empty',
    'Name the database of your nodes, or create the tables of a new one: otpd migrate up',
  )
}
