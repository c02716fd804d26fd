import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, copyFileSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { openTestSqlite } from '../../helpers/databases.ts'

let opened: Awaited<ReturnType<typeof openTestSqlite>>
let causes: string[]
beforeEach(async () => {
  causes = []
  opened = await openTestSqlite({ onUnavailable: (code) => causes.push(code) })
  await put('before')
})
afterEach(() => opened.dispose())

const put = (name: string) =>
  opened.database.write(async (tx) => {
    await tx.insert(opened.database.tables.meta).values({ name, value: '1' })
  })

for (const suffix of ['', '-wal'])
  test(`no write is acknowledged while otpd.db${suffix} is moved, and they go on once it is back`, async () => {
    const path = `${opened.path}${suffix}`
    renameSync(path, `${path}.moved`)
    const refused = await put('while it is away').catch((error: unknown) => error)
    renameSync(`${path}.moved`, path)
    await put('after')
    expect(refused).toBeInstanceOf(ServiceError)
    expect(refused).toMatchObject({ code: 'UNAVAILABLE' })
    expect(causes).toEqual(['SQLITE_READONLY_DBMOVED'])
  })

test('no write is acknowledged after the file was replaced by a copy', async () => {
  copyFileSync(opened.path, `${opened.path}.copy`)
  renameSync(opened.path, `${opened.path}.moved`)
  renameSync(`${opened.path}.copy`, opened.path)
  const refused = await put('into the old file').catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'UNAVAILABLE' })
})

// Every directory is open to root, so that user is given up for a moment.
const user = process.geteuid?.()
test.skipIf(user === undefined)('writes go on while the directory is closed to this user', async () => {
  const folder = dirname(opened.path)
  chmodSync(folder, 0)
  if (user === 0) process.seteuid?.(65534)
  try {
    await put('unseen')
  } finally {
    if (user === 0) process.seteuid?.(0)
    chmodSync(folder, 0o700)
  }
  expect(causes).toEqual([])
})
