import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RecordedResponse } from './calls.ts'
import type { ApiResponse } from './http.ts'
import { listAt, type Json } from './json.ts'
import { packRecords, unpackRecords, type Packed } from './records.ts'
import type { OpenState } from './seed/open-state.ts'
import type { Account, Application } from './world.ts'

/**
 * Credentials and responses that belong to the database of a release: `X.Y.Z.db.gz` is the database, `X.Y.Z.json` the
 * rest. Never change a fixture: a release that responds differently breaks its clients.
 */
export type Fixture = {
  version: string
  masterKey: string
  publicUrl: string
  /** When the last server of the scenario stopped, in milliseconds; long ago on the real clock. */
  endedAt: number
  accounts: Record<string, Account>
  applications: Record<string, Application>
  open: OpenState
  /** Responses at `endedAt`, by the release itself. */
  answers: RecordedResponse[]
  /** Responses of the release on the real clock, masked by `maskLater`, that differ from `answers`. */
  later: RecordedResponse[]
  /** Output of commands at `endedAt`. */
  commands: Array<{ args: string[]; data: ApiResponse['body'] }>
}

const folder = import.meta.dir

/** Lists the versions that have a fixture, oldest first. */
export const listFixtures = () =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.db.gz'))
    .map((name) => name.slice(0, -'.db.gz'.length))
    .toSorted(Bun.semver.order)

export function readFixture(version: string): Fixture {
  const text = readFileSync(join(folder, `${version}.json`), 'utf8')
  // Written by `writeFixture`, which takes a Fixture.
  const { shapes, records, answers, later, ...facts } = JSON.parse(text) as Written
  const lists = unpackRecords({ shapes, records, packed: { answers, later } })
  return { ...facts, ...(lists as unknown as Pick<Fixture, 'answers' | 'later'>) }
}

type Written = Omit<Fixture, 'answers' | 'later'> & Omit<Packed, 'packed'> & { answers: Json; later: Json }

/** Unpacks the database of a version into the data directory of a folder. */
export function unpackDatabase(version: string, into: string): void {
  writeDatabase(into, Bun.gunzipSync(readFileSync(join(folder, `${version}.db.gz`))))
}

export function writeDatabase(into: string, database: Uint8Array): void {
  mkdirSync(join(into, 'data'), { recursive: true, mode: 0o700 })
  writeFileSync(join(into, 'data', 'otpd.db'), database, { mode: 0o600 })
}

/** Writes both files of a fixture, with each record on a line of its own. */
export function writeFixture({ answers, later, ...facts }: Fixture, database: Uint8Array<ArrayBuffer>): void {
  const { shapes, records, packed } = packRecords([answers, later])
  const lists = { answers: listAt(packed, 0), later: listAt(packed, 1), shapes, records }
  const fields = Object.entries(facts).map(
    ([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  )
  for (const [name, rows] of Object.entries(lists)) {
    fields.push(`${JSON.stringify(name)}: [\n${rows.map((row) => JSON.stringify(row)).join(',\n')}\n]`)
  }
  writeFileSync(join(folder, `${facts.version}.db.gz`), Bun.gzipSync(database, { level: 9 }))
  writeFileSync(join(folder, `${facts.version}.json`), `{\n${fields.join(',\n')}\n}\n`)
}
