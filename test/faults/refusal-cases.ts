import { Database } from 'bun:sqlite'
import { chmodSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Trial } from './family.ts'
import { startServerAt, type Home } from './server.ts'

/** A condition under which a start must be refused. */
export type Refusal = {
  scenario: string
  /** Breaks a home that was in use. May return a function that cleans up. */
  corrupt(serverHome: Home, trial: Trial): (() => unknown) | void | Promise<(() => unknown) | void>
  env?: (serverHome: Home) => Record<string, string>
  args?: string[]
  /** User to run as. Permissions do not restrict root, so they are tried as an unprivileged user. */
  as?: 'nobody'
}

const databasePath = (serverHome: Home) => join(serverHome.dataDir, 'otpd.db')
const runSql = (serverHome: Home, sql: string) => {
  const connection = new Database(databasePath(serverHome))
  connection.run(sql)
  connection.close()
}

export const refusalCases: Refusal[] = [
  {
    scenario: 'a database whose first 16 bytes are overwritten',
    corrupt: (serverHome) =>
      writeFileSync(
        databasePath(serverHome),
        Buffer.concat([Buffer.alloc(16, 7), readFileSync(databasePath(serverHome)).subarray(16)]),
      ),
  },
  {
    scenario: 'a database that is cut at a random length',
    corrupt(serverHome, { random }) {
      const { size } = statSync(databasePath(serverHome))
      truncateSync(databasePath(serverHome), 1 + Math.floor(random() * (size - 1)))
    },
  },
  {
    scenario: 'a database that lost its last page',
    corrupt: (serverHome) =>
      truncateSync(databasePath(serverHome), statSync(databasePath(serverHome)).size - 4096),
  },
  {
    scenario: 'a database that lost the last byte',
    corrupt: (serverHome) =>
      truncateSync(databasePath(serverHome), statSync(databasePath(serverHome)).size - 1),
  },
  {
    scenario: 'a text file instead of the database',
    corrupt: (serverHome) =>
      writeFileSync(
        databasePath(serverHome),
        'these are not the pages that you are looking for\n'.repeat(200),
      ),
  },
  {
    scenario: "another program's SQLite database instead of otpd's",
    corrupt(serverHome) {
      rmSync(databasePath(serverHome))
      runSql(serverHome, 'create table songs (title text)')
      chmodSync(databasePath(serverHome), 0o600)
    },
  },
  {
    scenario: 'a database of a newer otpd',
    corrupt: (serverHome) =>
      runSql(
        serverHome,
        "insert into migrations (name, checksum, applied_at) values ('9999_future', 'x', 0)",
      ),
  },
  {
    scenario: 'a database of another build',
    corrupt: (serverHome) =>
      runSql(serverHome, "update migrations set checksum = 'x' where name = '0001_initial'"),
  },
  {
    scenario: 'a data directory without write permission',
    corrupt: (serverHome) => chmodSync(serverHome.dataDir, 0o500),
    as: 'nobody',
  },
  {
    scenario: 'a database without write permission',
    corrupt: (serverHome) => chmodSync(databasePath(serverHome), 0o400),
    as: 'nobody',
  },
  {
    scenario: 'another master key',
    corrupt: (serverHome) =>
      writeFileSync(join(serverHome.dataDir, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`),
  },
  { scenario: 'no master key', corrupt: (serverHome) => rmSync(join(serverHome.dataDir, 'master.key')) },
  {
    scenario: 'an invalid master key',
    corrupt: (serverHome) => writeFileSync(join(serverHome.dataDir, 'master.key'), 'x\n'),
  },
  {
    scenario: 'a master key that others can read',
    corrupt: (serverHome) => chmodSync(join(serverHome.dataDir, 'master.key'), 0o644),
  },
  {
    scenario: 'a second server on the same data directory',
    async corrupt(serverHome) {
      const first = await startServerAt(serverHome)
      return () => first.stop()
    },
  },
  {
    scenario: 'a port that another program uses',
    async corrupt(serverHome) {
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      serverHome.env['OTPD_LISTEN'] = `127.0.0.1:${port}`
      return () => server.close()
    },
  },
  {
    scenario: 'a configuration that is not TOML',
    corrupt: (serverHome) => writeFileSync(serverHome.config, '[plans.free\nprojects = '),
  },
  {
    scenario: 'a configuration with an unknown setting and a wrong value',
    corrupt: (serverHome) =>
      writeFileSync(serverHome.config, 'lissten = "x"\n[plans.free]\nprojects = "many"\n'),
  },
  { scenario: 'a missing configuration file', corrupt: (serverHome) => rmSync(serverHome.config) },
  {
    scenario: 'an invalid listen address',
    corrupt: (serverHome) => void (serverHome.env['OTPD_LISTEN'] = 'nowhere'),
  },
  {
    scenario: 'a data directory that is a file',
    corrupt(serverHome) {
      rmSync(serverHome.dataDir, { recursive: true })
      writeFileSync(serverHome.dataDir, '')
    },
  },
]
