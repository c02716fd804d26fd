import { Database } from 'bun:sqlite'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrateSqlite, sqliteMigrations } from '../../src/store/engine/migrate.ts'
import { connect } from '../../src/store/engine/sqlite.ts'
import { binaryPath } from '../helpers/binary.ts'
import { unless } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { makeHome, type Home } from './server.ts'
import { buildShim, createShim, errno, type Shim } from './shim.ts'

export const migrations: Family = {
  name: 'migrations',
  about: 'an upgrade of the database that fails or is killed',
  counts: { upgrades: { full: 100, short: 6 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    const versions = sqliteMigrations.slice(0, -1).map((_, index) => index + 1)
    for (const version of trial.short ? versions.slice(-1) : versions) {
      const old = await makeOld(trial, version)
      await failStatements(trial, old)
      await failCalls(trial, old, library, { error: 'EIO' })
      await failCalls(trial, old, library, { error: 'ENOSPC' })
      await kill(trial, old)
    }
  },
}

type Old = { version: number; file: string; dump: string; name: string }

/** A database as an earlier otpd left it, with a developer in it. */
async function makeOld(trial: Trial, version: number): Promise<Old> {
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

/** The whole content, but for what every start writes. */
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

function makeUpgrade(trial: Trial, { file }: Old): Home {
  const at = makeHome(trial, `upgrade-${homes++}`)
  mkdirSync(at.dataDir, { mode: 0o700 })
  copyFileSync(file, join(at.dataDir, 'otpd.db'))
  chmodSync(join(at.dataDir, 'otpd.db'), 0o600)
  writeFileSync(join(at.dataDir, 'master.key'), `${Buffer.alloc(32, 3).toString('base64')}\n`, {
    mode: 0o600,
  })
  return at
}

type Ran = { exitCode: number | null; stderr: string }

async function migrateUp(at: Home, env: Record<string, string> = {}, killAfterMs?: number): Promise<Ran> {
  const child = Bun.spawn([binaryPath, 'migrate', 'up', '--data-dir', at.dataDir, '--config', at.config], {
    env: { PATH: process.env['PATH'] ?? '', HOME: at.home, ...env },
    cwd: at.home,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited])
  clearTimeout(timer)
  return { stderr, exitCode: child.signalCode === null ? exitCode : null }
}

/** What is wrong with the file: it must be as it was, or whole and new. Says which. */
function judge(at: Home, old: Old): { state: 'old' | 'new' | 'neither'; broken: string[] } {
  const file = join(at.dataDir, 'otpd.db')
  const broken: string[] = []
  const backups = join(at.dataDir, 'backups')
  for (const name of existsSync(backups) ? readdirSync(backups) : []) {
    if (!name.endsWith('.db')) continue
    const same = (() => {
      try {
        return dump(join(backups, name)) === old.dump
      } catch (error) {
        return String(error)
      }
    })()
    if (same !== true) broken.push(`the backup ${name} is not the old database: ${same}`)
  }
  if (dump(file) === old.dump) return { state: 'old', broken }
  const connection = new Database(file, { readonly: true })
  const check = connection
    .query<{ integrity_check: string }, []>('PRAGMA integrity_check')
    .get()?.integrity_check
  const applied = connection.query('select name from migrations').all().length
  const projects = connection.query('select id from projects').all().length
  connection.close()
  if (check === 'ok' && applied === sqliteMigrations.length && projects === 500)
    return { state: 'new', broken }
  return {
    state: 'neither',
    broken: [...broken, `integrity ${check}, ${applied} migrations, ${projects} projects`],
  }
}

/** Whether it is upgraded once nothing is in the way. */
async function finish(at: Home, old: Old): Promise<string[]> {
  const { exitCode, stderr } = await migrateUp(at)
  const { state, broken } = judge(at, old)
  return [
    ...unless(exitCode === 0, `the next upgrade ended with ${exitCode}: ${stderr.slice(0, 200)}`),
    ...unless(state === 'new', `the next upgrade left the ${state} database`),
    ...broken,
  ]
}

/** Each statement in turn finds what it makes there already. */
async function failStatements(trial: Trial, old: Old): Promise<void> {
  const sql = sqliteMigrations
    .slice(old.version)
    .map((one) => one.sql)
    .join('\n')
  const obstacles = [
    ...[...sql.matchAll(/^create (?:table|(?:unique )?index) (\w+)/gim)].map(
      ([, name]) => `create table "${name}" (in_the_way integer)`,
    ),
    ...[...sql.matchAll(/^alter table (\w+) add column (\w+)/gim)].map(
      ([, table, column]) => `alter table "${table}" add column "${column}" text`,
    ),
  ]
  const broken: string[] = []
  let tried = 0
  for (const obstacle of obstacles) {
    const at = makeUpgrade(trial, old)
    const connection = new Database(join(at.dataDir, 'otpd.db'))
    try {
      connection.run(obstacle)
    } catch {
      // Of a table that an earlier statement of the same upgrade makes.
      continue
    } finally {
      connection.close()
    }
    tried++
    const before = dump(join(at.dataDir, 'otpd.db'))
    const { exitCode, stderr } = await migrateUp(at)
    broken.push(
      ...unless(exitCode === 9, `${obstacle}: it ended with ${exitCode}: ${stderr.slice(0, 300)}`),
      ...unless(dump(join(at.dataDir, 'otpd.db')) === before, `${obstacle}: the database was changed`),
    )
    rmSync(at.home, { recursive: true })
  }
  trial.report({
    tried: `an upgrade from ${old.name} of which one statement fails, ${tried} statements in turn`,
    promised: 'exit code 9 with a reason, the old database',
    figures: { statements: tried },
    broken,
  })
}

/** Each write, sync, truncation and removal in turn fails once. */
async function failCalls(
  trial: Trial,
  old: Old,
  library: string,
  { error }: { error: 'EIO' | 'ENOSPC' },
): Promise<void> {
  const upgrade = async (failAt: number) => {
    const at = makeUpgrade(trial, old)
    const shim: Shim = createShim(library, trial.folder, at.dataDir)
    shim.set('failErrno', errno[error])
    shim.set('failAt', failAt)
    const ran = await migrateUp(at, shim.env())
    const calls = shim.get('calls')
    shim.close()
    return { at, ran, calls }
  }
  const whole = await upgrade(0)
  const chosen = Math.min(trial.count('upgrades'), whole.calls)
  const states = { old: 0, new: 0, neither: 0 }
  const exits = new Map<number | null, number>()
  const broken: string[] = []
  for (let i = 0; i < chosen; i++) {
    const failAt = 1 + Math.floor((i * whole.calls) / chosen)
    const { at, ran } = await upgrade(failAt)
    const { state, broken: wrong } = judge(at, old)
    states[state]++
    exits.set(ran.exitCode, (exits.get(ran.exitCode) ?? 0) + 1)
    const claimed = ran.exitCode === 0 && state !== 'new'
    broken.push(
      ...wrong.map((one) => `call ${failAt}: ${one}`),
      ...unless(!claimed, `call ${failAt}: it said that it was done, and is not`),
      ...unless(
        ran.exitCode === 0 || ran.exitCode === 9,
        `call ${failAt}: it ended with ${ran.exitCode}: ${ran.stderr.slice(0, 300)}`,
      ),
      ...(await finish(at, old)).map((one) => `call ${failAt}: ${one}`),
    )
    rmSync(at.home, { recursive: true })
  }
  trial.report({
    tried: `an upgrade from ${old.name} of which one call to the disk fails with ${error}, ${chosen} of ${whole.calls} calls in turn`,
    promised:
      'the old database or the new one, whole; exit code 0 only for the new one, else 9; the next upgrade works',
    figures: { ...states, exits: [...exits].map(([code, count]) => `${code} × ${count}`).join(', ') },
    broken,
  })
}

async function kill(trial: Trial, old: Old): Promise<void> {
  const startedAt = performance.now()
  await migrateUp(makeUpgrade(trial, old))
  const wholeMs = performance.now() - startedAt
  const states = { old: 0, new: 0, neither: 0 }
  const broken: string[] = []
  for (let i = 0; i < trial.count('upgrades'); i++) {
    const at = makeUpgrade(trial, old)
    await migrateUp(at, {}, trial.random() * wholeMs * 1.1)
    const { state, broken: wrong } = judge(at, old)
    states[state]++
    broken.push(...wrong, ...(await finish(at, old)))
    rmSync(at.home, { recursive: true })
  }
  trial.report({
    tried: `an upgrade from ${old.name} that is killed, ${trial.count('upgrades')} times`,
    promised: 'the old database or the new one, whole; the next upgrade works',
    figures: states,
    broken,
  })
}
