import { Database } from 'bun:sqlite'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestApp } from '../helpers/webhook-client.ts'
import { checkFile, checkInvariants } from './database-checks.ts'
import { encodeRequest, openConnection } from './connection.ts'
import { checkLists } from './list-checks.ts'
import { startServerAt, type Home } from './server.ts'

/** State that must survive, because it was acknowledged to a caller. */
export type ExpectedState = Map<string, { attempts: number; verifiedAt: string | undefined }>

/** Images are read once, so they are kept in memory, which saves gigabytes of disk writes. */
const imagesRoot = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** Writes the files that survived a power cut into a new home, which the caller removes. */
export function writeImage(from: Home, files: ReadonlyMap<string, Buffer>): Home {
  const home = mkdtempSync(join(imagesRoot, 'otpd-cut-'))
  const dataDir = join(home, 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  for (const [name, bytes] of files) writeFileSync(join(dataDir, name), bytes, { mode: 0o600 })
  copyFileSync(join(from.dataDir, 'master.key'), join(dataDir, 'master.key'))
  return { ...from, home, dataDir }
}

/** Opens the files that survived a power cut with SQLite alone. @returns what is missing or damaged */
export function checkImage({ dataDir }: Home, expected: ExpectedState): string[] {
  const path = join(dataDir, 'otpd.db')
  if (!existsSync(path)) return expected.size === 0 ? [] : ['there is no database']
  let database: Database | undefined
  try {
    database = new Database(path)
    const damage = checkFile(database, 'integrity_check')
    const tables = database.query(`select 1 from sqlite_schema where name = 'otp_requests'`).get()
    if (damage.length > 0 || (!tables && expected.size === 0)) return damage
    return [...checkExpectedState(database, expected), ...checkInvariants(database)]
  } catch (error) {
    return [String(error)]
  } finally {
    database?.close()
  }
}

type Row = { id: string; status: string; attempts: number; verified_at: number | null }

function checkExpectedState(database: Database, expected: ExpectedState): string[] {
  const rows = database.query<Row, []>('select id, status, attempts, verified_at from otp_requests').all()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return [...expected].flatMap(([id, { attempts, verifiedAt }]) => {
    const row = byId.get(id)
    if (!row) return [`${id} was acknowledged and is gone`]
    const violations: string[] = []
    if (row.attempts < attempts) violations.push(`${id}: ${row.attempts} of ${attempts} attempts are counted`)
    if (verifiedAt !== undefined && row.verified_at !== Date.parse(verifiedAt)) {
      violations.push(`${id} was verified and is ${row.status}`)
    }
    return violations
  })
}

/**
 * Starts otpd on the files that survived, calls it, and checks the database afterwards.
 *
 * @param token ID token of the developer
 * @returns what is wrong
 */
export async function bootImage(
  home: Home,
  expected: ExpectedState,
  { apps, token }: { apps: TestApp[]; token: string },
): Promise<string[]> {
  const server = await startServerAt(home).catch((error: unknown) => String(error))
  if (typeof server === 'string') return [`otpd does not start: ${server}`]
  const violations: string[] = []
  try {
    const connection = await openConnection(server.url)
    const verified = [...expected].filter(([, { verifiedAt }]) => verifiedAt !== undefined).slice(-20)
    for (const [requestId] of verified) {
      const responses: string[] = []
      for (const { headers } of apps) {
        const body = { requestId, code: '000000' }
        responses.push(
          (await connection.send(encodeRequest('POST', '/v1/otp/verify', headers, body)))?.body ?? '',
        )
      }
      if (!responses.some((body) => body.includes('ALREADY_VERIFIED')))
        violations.push(`${requestId} can be verified again`)
    }
    connection.close()
    const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
    // A cut may have taken the account and its log-in.
    if (expected.size > 0) violations.push(...(await checkLists(server.url, token, database)))
    database.close()
  } finally {
    await server.stop()
  }
  return [...violations, ...checkImage(home, expected)]
}
