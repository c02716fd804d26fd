import type { OnStep } from '../shared/progress.ts'
import type { Config, DatabaseConfig } from '../config/config.ts'
import type { Database } from '../store/engine/database.ts'
import { openPostgres } from '../store/postgres/database.ts'
import { verifyChains, type AuditVerification } from '../store/data-dir/audit-verification.ts'
import { runOnPostgres } from '../store/engine/sql-steps.ts'
import { toStartError, withPostgres } from '../store/postgres/connect.ts'
import { openSharedKeyring } from '../store/postgres/keyring.ts'
import { prepareSharedDatabase } from '../store/postgres/prepare.ts'
import { withSnapshot } from '../store/postgres/snapshot.ts'
import { buildStore, hostClock } from './open.ts'

/** The smallest number that the pools accept; a command does one thing at a time. */
const connections = 4

export type SharedConfig = Pick<Config, 'migrate' | 'node' | 'secrets'> & { database: DatabaseConfig }

/** Returns the configured master key, without which there is no configuration of a shared database. */
export function requireSharedKey({ secrets }: Pick<Config, 'secrets'>): Uint8Array {
  if (secrets.masterKey) return secrets.masterKey
  throw new Error('a shared database needs a configured master key')
}

/** Names the connections of a host command. */
const commandName = ({ node }: Pick<Config, 'node'>) => `otpd-command/${node}`

/**
 * Opens a shared database for a host command, also while nodes serve it.
 *
 * @param access `read` needs a database of this version, and every write then fails; `write` migrates an older one, as a
 *   node does
 * @throws StartRefused; OperationRefused (NO_DATABASE) it is empty
 */
export async function openSharedStore(config: SharedConfig, access: 'read' | 'write') {
  const { url, isUnsafe } = config.database
  const clock = hostClock()
  const { clockAheadMs } = await prepareSharedDatabase({
    url,
    applicationName: commandName(config),
    // Works behind every pooler, and a command runs few statements.
    statements: 'unnamed',
    isUnsafe,
    migrate: access === 'write' && config.migrate,
    mustExist: true,
    waitMs: 0,
    now: clock.now,
  })
  const shared = { now: () => clock.now() + clockAheadMs }
  const database = openPostgres(url, {
    connections,
    statements: 'unnamed',
    keepsOptions: false,
    applicationName: commandName(config),
  })
  try {
    const { keyring } = await openSharedKeyring(database, requireSharedKey(config), {
      now: shared.now(),
      mustExist: access === 'read',
    })
    return buildStore(explaining(access === 'read' ? asReadOnly(database) : database), keyring, shared)
  } catch (error) {
    await database.close()
    throw toStartError(database.convertError(error))
  }
}

/** Says why a command cannot use the database, and what to do: the error for callers of a node leaves that to its log. */
function explaining(database: Database): Database {
  const fail = (error: unknown): never => {
    throw toStartError(error)
  }
  return {
    ...database,
    write: (body, options) => database.write(body, options).catch(fail),
    group(bind) {
      const run = database.group(bind)
      return <R>(call: Parameters<typeof run>[0]) => run<R>(call).catch(fail)
    },
    convertError: (error) => toStartError(database.convertError(error)),
  }
}

const asReadOnly = (database: Database): Database => {
  const refuse = () => Promise.reject(new Error('the database is open for reading only'))
  return { ...database, write: refuse, group: () => refuse }
}

/** Verifies the audit trail, also while nodes serve the database. @throws as openSharedStore */
export async function verifySharedAudit(config: SharedConfig, onStep?: OnStep): Promise<AuditVerification> {
  const { keys, close } = await openSharedStore(config, 'read')
  try {
    return await withPostgres(config.database.url, (client) =>
      withSnapshot(client, () => runOnPostgres(client, verifyChains(keys, onStep))),
    )
  } finally {
    await close()
  }
}
