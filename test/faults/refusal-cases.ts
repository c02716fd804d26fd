import { Database } from 'bun:sqlite'
import { chmodSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Trial } from './family.ts'
import { startAt, type Home } from './server.ts'

/** A way to make a start impossible. */
export type Refusal = {
  tried: string
  /** Breaks a home that was in use. May give what ends the trial. */
  harm(at: Home, trial: Trial): (() => unknown) | void | Promise<(() => unknown) | void>
  env?: (at: Home) => Record<string, string>
  args?: string[]
  /** Root may read and write everything, so that rights are tried as somebody else. */
  as?: 'nobody'
}

const database = (at: Home) => join(at.dataDir, 'otpd.db')
const change = (at: Home, sql: string) => {
  const connection = new Database(database(at))
  connection.run(sql)
  connection.close()
}

export const cases: Refusal[] = [
  {
    tried: 'a database whose first 16 bytes are overwritten',
    harm: (at) =>
      writeFileSync(
        database(at),
        Buffer.concat([Buffer.alloc(16, 7), readFileSync(database(at)).subarray(16)]),
      ),
  },
  {
    tried: 'a database that is cut at a random length',
    harm(at, { random }) {
      const { size } = statSync(database(at))
      truncateSync(database(at), 1 + Math.floor(random() * (size - 1)))
    },
  },
  {
    tried: 'a database that lost its last page',
    harm: (at) => truncateSync(database(at), statSync(database(at)).size - 4096),
  },
  {
    tried: 'a text file in place of the database',
    harm: (at) =>
      writeFileSync(database(at), 'these are not the pages that you are looking for\n'.repeat(200)),
  },
  {
    tried: "another program's SQLite database in place of ours",
    harm(at) {
      rmSync(database(at))
      change(at, 'create table songs (title text)')
      chmodSync(database(at), 0o600)
    },
  },
  {
    tried: 'a database of a newer otpd',
    harm: (at) =>
      change(at, "insert into migrations (name, checksum, applied_at) values ('9999_future', 'x', 0)"),
  },
  {
    tried: 'a database of another build',
    harm: (at) => change(at, "update migrations set checksum = 'x' where name = '0001_initial'"),
  },
  {
    tried: 'a data directory without the right to write',
    harm: (at) => chmodSync(at.dataDir, 0o500),
    as: 'nobody',
  },
  {
    tried: 'a database without the right to write',
    harm: (at) => chmodSync(database(at), 0o400),
    as: 'nobody',
  },
  {
    tried: 'another master key',
    harm: (at) =>
      writeFileSync(join(at.dataDir, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`),
  },
  { tried: 'no master key', harm: (at) => rmSync(join(at.dataDir, 'master.key')) },
  { tried: 'a master key that is none', harm: (at) => writeFileSync(join(at.dataDir, 'master.key'), 'x\n') },
  {
    tried: 'a master key that others can read',
    harm: (at) => chmodSync(join(at.dataDir, 'master.key'), 0o644),
  },
  {
    tried: 'a second server on the same data directory',
    async harm(at) {
      const first = await startAt(at)
      return () => first.stop()
    },
  },
  {
    tried: 'a port that another program has',
    async harm(at) {
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      at.env['OTPD_LISTEN'] = `127.0.0.1:${port}`
      return () => server.close()
    },
  },
  {
    tried: 'a configuration that is no TOML',
    harm: (at) => writeFileSync(at.config, '[plans.free\nprojects = '),
  },
  {
    tried: 'a configuration with an unknown setting and a wrong value',
    harm: (at) => writeFileSync(at.config, 'lissten = "x"\n[plans.free]\nprojects = "many"\n'),
  },
  { tried: 'a configuration file that is not there', harm: (at) => rmSync(at.config) },
  { tried: 'an address to listen on that is none', harm: (at) => void (at.env['OTPD_LISTEN'] = 'nowhere') },
  {
    tried: 'a data directory that is a file',
    harm(at) {
      rmSync(at.dataDir, { recursive: true })
      writeFileSync(at.dataDir, '')
    },
  },
]
