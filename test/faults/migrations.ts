import { Database } from 'bun:sqlite'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqliteMigrations } from '../../src/store/engine/migration-files.ts'
import { migrateSqlite } from '../../src/store/sqlite/migrate.ts'
import { connect } from '../../src/store/sqlite/database.ts'
import { binaryPath } from '../helpers/binary.ts'
import { violationUnless } from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { makeHome, type Home } from './server.ts'
import { buildShim, createShim, errno, type Shim } from './disk-shim.ts'

export const migrations: FaultFamily = {
  name: 'migrations',
  description: 'an upgrade of the database that fails or is killed',
  counts: { upgrades: { full: 100, short: 6 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    const versions = sqliteMigrations.slice(0, -1).map((_, index) => index + 1)
    for (const version of trial.short ? versions.slice(-1) : versions) {
      const oldDatabase = await makeOldDatabase(trial, version)
      await failStatements(trial, oldDatabase)
      await failCalls(trial, oldDatabase, library, { error: 'EIO' })
      await failCalls(trial, oldDatabase, library, { error: 'ENOSPC' })
      await killUpgrades(trial, oldDatabase)
    }
  },
}

type OldDatabase = { version: number; file: string; dump: string; name: string }

/** Creates a database of an earlier schema version, with a developer in it. */
async function makeOldDatabase(trial: Trial, version: number): Promise<OldDatabase> {
  const file = join(trial.folder, `old-${version}.db`)
  const connection = connect(file, 0)
  migrateSqlite(connection, 0, sqliteMigrations.slice(0, version))
  connection.run(`insert into developers (id, plan, virtual_phone, status, created_at, updated_at)
    values ('dev_1', 'free', '+9990000000001', 'active', 1, 1)`)
  const insert = connection.prepare(`insert into projects (id, developer_id, name, created_at, updated_at)
    values (?, 'dev_1', 'Project', 1, 1)`)
  for (let i = 0; i < 500; i++) insert.run(`prj_${i}`)
  insert.finalize()
  connection.close()
  return { version, file, dump: dump(file), name: `${sqliteMigrations[version - 1]?.name ?? ''}` }
}

/** Dumps the whole content, except what every start writes. */
function dump(file: string): string {
  const connection = new Database(file, { readonly: true })
  try {
    const schema = connection
      .query<{ name: string; type: string; sql: string | null }, []>(
        'select name, type, sql from sqlite_schema order by name',
      )
      .all()
    const rows = schema
      .filter(({ name, type }) => type === 'table' && name !== 'meta')
      .map(({ name }) => [name, connection.query(`select * from "${name}"`).all()])
    return Bun.hash(JSON.stringify([schema, rows])).toString()
  } finally {
    connection.close()
  }
}

let homes = 0

function copyOldDatabase(trial: Trial, { file }: OldDatabase): Home {
  const serverHome = makeHome(trial, `upgrade-${homes++}`)
  mkdirSync(serverHome.dataDir, { mode: 0o700 })
  copyFileSync(file, join(serverHome.dataDir, 'otpd.db'))
  chmodSync(join(serverHome.dataDir, 'otpd.db'), 0o600)
  writeFileSync(join(serverHome.dataDir, 'master.key'), `${Buffer.alloc(32, 3).toString('base64')}\n`, {
    mode: 0o600,
  })
  return serverHome
}

type MigrationRun = { exitCode: number | null; stderr: string }

async function migrateUp(
  serverHome: Home,
  env: Record<string, string> = {},
  killAfterMs?: number,
): Promise<MigrationRun> {
  const child = Bun.spawn(
    [binaryPath, 'migrate', 'up', '--data-dir', serverHome.dataDir, '--config', serverHome.config],
    {
      env: { PATH: process.env['PATH'] ?? '', HOME: serverHome.home, ...env },
      cwd: serverHome.home,
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'pipe',
    },
  )
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited])
  clearTimeout(timer)
  return { stderr, exitCode: child.signalCode === null ? exitCode : null }
}

/** Checks that the file is either unchanged or completely upgraded. Returns which one, and the violations. */
function checkUpgrade(
  serverHome: Home,
  oldDatabase: OldDatabase,
): { state: 'old' | 'new' | 'neither'; violations: string[] } {
  const file = join(serverHome.dataDir, 'otpd.db')
  const violations: string[] = []
  const backups = join(serverHome.dataDir, 'backups')
  for (const name of existsSync(backups) ? readdirSync(backups) : []) {
    if (!name.endsWith('.db')) continue
    const isSame = (() => {
      try {
        return dump(join(backups, name)) === oldDatabase.dump
      } catch (error) {
        return String(error)
      }
    })()
    if (isSame !== true) violations.push(`the backup ${name} is not the old database: ${isSame}`)
  }
  if (dump(file) === oldDatabase.dump) return { state: 'old', violations }
  const connection = new Database(file, { readonly: true })
  const integrity = connection
    .query<{ integrity_check: string }, []>('PRAGMA integrity_check')
    .get()?.integrity_check
  const applied = connection.query('select name from migrations').all().length
  const projects = connection.query('select id from projects').all().length
  connection.close()
  if (integrity === 'ok' && applied === sqliteMigrations.length && projects === 500)
    return { state: 'new', violations }
  return {
    state: 'neither',
    violations: [...violations, `integrity ${integrity}, ${applied} migrations, ${projects} projects`],
  }
}

/** Runs the upgrade without a fault. @returns the violations */
async function retryUpgrade(serverHome: Home, oldDatabase: OldDatabase): Promise<string[]> {
  const { exitCode, stderr } = await migrateUp(serverHome)
  const { state, violations } = checkUpgrade(serverHome, oldDatabase)
  return [
    ...violationUnless(exitCode === 0, `the next upgrade ended with ${exitCode}: ${stderr.slice(0, 200)}`),
    ...violationUnless(state === 'new', `the next upgrade left the ${state} database`),
    ...violations,
  ]
}

/** Makes each statement in turn fail, because the table or column that it creates already exists. */
async function failStatements(trial: Trial, oldDatabase: OldDatabase): Promise<void> {
  const sql = sqliteMigrations
    .slice(oldDatabase.version)
    .map((migrationFile) => migrationFile.sql)
    .join('\n')
  const obstacles = [
    ...[...sql.matchAll(/^create (?:table|(?:unique )?index) (\w+)/gim)].map(
      ([, name]) => `create table "${name}" (in_the_way integer)`,
    ),
    ...[...sql.matchAll(/^alter table (\w+) add column (\w+)/gim)].map(
      ([, table, column]) => `alter table "${table}" add column "${column}" text`,
    ),
  ]
  const violations: string[] = []
  let triedCount = 0
  for (const obstacle of obstacles) {
    const serverHome = copyOldDatabase(trial, oldDatabase)
    const connection = new Database(join(serverHome.dataDir, 'otpd.db'))
    try {
      connection.run(obstacle)
    } catch {
      // The table is created by an earlier statement of the same upgrade.
      continue
    } finally {
      connection.close()
    }
    triedCount++
    const before = dump(join(serverHome.dataDir, 'otpd.db'))
    const { exitCode, stderr } = await migrateUp(serverHome)
    violations.push(
      ...violationUnless(exitCode === 9, `${obstacle}: it ended with ${exitCode}: ${stderr.slice(0, 300)}`),
      ...violationUnless(
        dump(join(serverHome.dataDir, 'otpd.db')) === before,
        `${obstacle}: the database was changed`,
      ),
    )
    rmSync(serverHome.home, { recursive: true })
  }
  trial.report({
    scenario: `an upgrade from ${oldDatabase.name} in which one statement fails, ${triedCount} statements in turn`,
    guarantee: 'exit code 9 with a reason, the database unchanged',
    figures: { statements: triedCount },
    violations,
  })
}

/** Makes each write, sync, truncation and deletion in turn fail once. */
async function failCalls(
  trial: Trial,
  oldDatabase: OldDatabase,
  library: string,
  { error }: { error: 'EIO' | 'ENOSPC' },
): Promise<void> {
  const upgrade = async (failAt: number) => {
    const serverHome = copyOldDatabase(trial, oldDatabase)
    const shim: Shim = createShim(library, trial.folder, serverHome.dataDir)
    shim.set('failErrno', errno[error])
    shim.set('failAt', failAt)
    const migration = await migrateUp(serverHome, shim.env())
    const calls = shim.get('calls')
    shim.close()
    return { serverHome, migration, calls }
  }
  const fullRun = await upgrade(0)
  const callCount = Math.min(trial.count('upgrades'), fullRun.calls)
  const states = { old: 0, new: 0, neither: 0 }
  const exits = new Map<number | null, number>()
  const violations: string[] = []
  for (let i = 0; i < callCount; i++) {
    const failAt = 1 + Math.floor((i * fullRun.calls) / callCount)
    const { serverHome, migration } = await upgrade(failAt)
    const { state, violations: upgradeViolations } = checkUpgrade(serverHome, oldDatabase)
    states[state]++
    exits.set(migration.exitCode, (exits.get(migration.exitCode) ?? 0) + 1)
    const isFalseSuccess = migration.exitCode === 0 && state !== 'new'
    violations.push(
      ...upgradeViolations.map((one) => `call ${failAt}: ${one}`),
      ...violationUnless(
        !isFalseSuccess,
        `call ${failAt}: it reported success, but the upgrade is incomplete`,
      ),
      ...violationUnless(
        migration.exitCode === 0 || migration.exitCode === 9,
        `call ${failAt}: it ended with ${migration.exitCode}: ${migration.stderr.slice(0, 300)}`,
      ),
      ...(await retryUpgrade(serverHome, oldDatabase)).map((one) => `call ${failAt}: ${one}`),
    )
    rmSync(serverHome.home, { recursive: true })
  }
  trial.report({
    scenario: `an upgrade from ${oldDatabase.name} in which one disk call fails with ${error}, ${callCount} of ${fullRun.calls} calls in turn`,
    guarantee:
      'the old or the new database, intact; exit code 0 only for the new one, else 9; the next upgrade works',
    figures: { ...states, exits: [...exits].map(([code, count]) => `${code} × ${count}`).join(', ') },
    violations,
  })
}

async function killUpgrades(trial: Trial, oldDatabase: OldDatabase): Promise<void> {
  const startedAt = performance.now()
  await migrateUp(copyOldDatabase(trial, oldDatabase))
  const wholeMs = performance.now() - startedAt
  const states = { old: 0, new: 0, neither: 0 }
  const violations: string[] = []
  for (let i = 0; i < trial.count('upgrades'); i++) {
    const serverHome = copyOldDatabase(trial, oldDatabase)
    await migrateUp(serverHome, {}, trial.random() * wholeMs * 1.1)
    const { state, violations: upgradeViolations } = checkUpgrade(serverHome, oldDatabase)
    states[state]++
    violations.push(...upgradeViolations, ...(await retryUpgrade(serverHome, oldDatabase)))
    rmSync(serverHome.home, { recursive: true })
  }
  trial.report({
    scenario: `an upgrade from ${oldDatabase.name} that is killed, ${trial.count('upgrades')} times`,
    guarantee: 'the old or the new database, intact; the next upgrade works',
    figures: states,
    violations,
  })
}
