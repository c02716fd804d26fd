import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { closeSync, copyFileSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkIntegrity, startIntegrityChecks } from '../../../src/store/data-dir/integrity.ts'

let folder: string
let intactPath: string
let songsRootPage: number

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-integrity-'))
  intactPath = join(folder, 'sound.db')
  const connection = new Database(intactPath)
  connection.run('create table albums (title text)')
  connection.run('create table songs (title text)')
  connection.run(`insert into songs values ('one'), ('two')`)
  songsRootPage =
    connection
      .query<{ rootpage: number }, []>(`select rootpage from sqlite_schema where name = 'songs'`)
      .get()?.rootpage ?? 0
  connection.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Collects the messages logged for a file until the check has ended. */
async function check(path: string): Promise<unknown[]> {
  const reports: unknown[] = []
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const report = {
    info: (msg: string) => void reports.push(msg),
    error: (msg: string, fields?: Record<string, unknown>) => void reports.push([msg, fields]),
  }
  checkIntegrity(path, report, { intactMessage: 'intact', onEnd: end })
  await ended
  return reports
}

describe('a check', () => {
  test('logs once that a database is intact', async () => {
    expect(await check(intactPath)).toEqual(['intact'])
  })

  test('names the damaged table, and does not report the database as intact', async () => {
    const corruptedPath = join(folder, 'spoilt.db')
    copyFileSync(intactPath, corruptedPath)
    const file = openSync(corruptedPath, 'r+')
    writeSync(file, Buffer.alloc(100, 0xff), 0, 100, (songsRootPage - 1) * 4096)
    closeSync(file)
    expect(await check(corruptedPath)).toEqual([
      ['the database is damaged; restore a backup: otpd restore latest', { table: 'songs' }],
    ])
  })

  test('finds a page that was zeroed while the server was stopped, also after a clean stop', async () => {
    const zeroedPath = join(folder, 'zeroed.db')
    copyFileSync(intactPath, zeroedPath)
    const file = openSync(zeroedPath, 'r+')
    writeSync(file, Buffer.alloc(4096), 0, 4096, (songsRootPage - 1) * 4096)
    closeSync(file)
    const { promise: found, resolve } = Promise.withResolvers<unknown>()
    const log = { info: () => {}, error: (_: string, fields?: Record<string, unknown>) => resolve(fields) }
    const options = { afterUncleanStop: false, hasDamagedLog: false, firstAfterMs: 0 }
    const stop = startIntegrityChecks(zeroedPath, log, options)
    expect(await found).toEqual({ table: 'songs' })
    stop()
  })

  test('logs when the database could not be checked', async () => {
    const reports = await check(join(folder, 'absent.db'))
    expect(reports).toMatchObject([['the database could not be checked', { error: expect.any(Error) }]])
  })

  test('ends without a result when it is stopped', async () => {
    const reports: string[] = []
    const report = {
      info: (msg: string) => void reports.push(msg),
      error: (msg: string) => void reports.push(msg),
    }
    await new Promise<void>((resolve) =>
      checkIntegrity(intactPath, report, { intactMessage: 'intact', onEnd: resolve })(),
    )
    expect(reports).toEqual([])
  })
})
