import { Database } from 'bun:sqlite'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestApp } from '../helpers/webhook-client.ts'
import { checkFile, checkSums } from './check.ts'
import { encodeCall, openConnection } from './connection.ts'
import { startAt, type Home } from './server.ts'

/** What must stand, because a caller was told so. */
export type Promised = Map<string, { attempts: number; verifiedAt: string | undefined }>

/** Memory is enough for what is looked at once, and spares the disk gigabytes. */
const imagesIn = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** Lays the files that a cut has left into a home of their own, which the caller removes. */
export function layImage(from: Home, files: ReadonlyMap<string, Buffer>): Home {
  const home = mkdtempSync(join(imagesIn, 'otpd-cut-'))
  const dataDir = join(home, 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  for (const [name, bytes] of files) writeFileSync(join(dataDir, name), bytes, { mode: 0o600 })
  copyFileSync(join(from.dataDir, 'master.key'), join(dataDir, 'master.key'))
  return { ...from, home, dataDir }
}

/** Opens what a cut has left with SQLite itself. @returns what is missing or damaged */
export function checkImage({ dataDir }: Home, promised: Promised): string[] {
  const path = join(dataDir, 'otpd.db')
  if (!existsSync(path)) return promised.size === 0 ? [] : ['there is no database']
  let database: Database | undefined
  try {
    database = new Database(path)
    const damage = checkFile(database, 'integrity_check')
    const tables = database.query(`select 1 from sqlite_schema where name = 'otp_requests'`).get()
    if (damage.length > 0 || (!tables && promised.size === 0)) return damage
    return [...checkPromised(database, promised), ...checkSums(database)]
  } catch (error) {
    return [String(error)]
  } finally {
    database?.close()
  }
}

type Row = { id: string; status: string; attempts: number; verified_at: number | null }

function checkPromised(database: Database, promised: Promised): string[] {
  const rows = database.query<Row, []>('select id, status, attempts, verified_at from otp_requests').all()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return [...promised].flatMap(([id, { attempts, verifiedAt }]) => {
    const row = byId.get(id)
    if (!row) return [`${id} was acknowledged and is gone`]
    const broken: string[] = []
    if (row.attempts < attempts) broken.push(`${id}: ${row.attempts} of ${attempts} attempts are counted`)
    if (verifiedAt !== undefined && row.verified_at !== Date.parse(verifiedAt)) {
      broken.push(`${id} was verified and is ${row.status}`)
    }
    return broken
  })
}

/** Starts otpd on what a cut has left, asks it, and looks at the database that it leaves. @returns what is wrong */
export async function bootImage(home: Home, promised: Promised, apps: TestApp[]): Promise<string[]> {
  const server = await startAt(home).catch((error: unknown) => String(error))
  if (typeof server === 'string') return [`otpd does not start: ${server}`]
  const broken: string[] = []
  try {
    const connection = await openConnection(server.url)
    const verified = [...promised].filter(([, { verifiedAt }]) => verifiedAt !== undefined).slice(-20)
    for (const [requestId] of verified) {
      const answers: string[] = []
      for (const { headers } of apps) {
        const body = { requestId, code: '000000' }
        answers.push((await connection.ask(encodeCall('POST', '/v1/otp/verify', headers, body)))?.body ?? '')
      }
      if (!answers.some((body) => body.includes('ALREADY_VERIFIED')))
        broken.push(`${requestId} can be verified again`)
    }
    connection.close()
  } finally {
    await server.stop()
  }
  return [...broken, ...checkImage(home, promised)]
}
