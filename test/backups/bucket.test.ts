import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBucket } from '../../src/backups/bucket.ts'
import { sealedName } from '../../src/backups/names.ts'
import {
  fetchSealedBackup,
  listBucket,
  removeFromBucket,
  sendSealedBackup,
} from '../../src/backups/sealed.ts'
import { headerBytes } from '../../src/backups/sealed-format.ts'
import { dataFiles } from '../../src/store/data-dir/data-dir.ts'
import { connect } from '../../src/store/sqlite/database.ts'
import { createTestDatabase } from '../helpers/data-dir.ts'
import { s3Error, startS3Server } from '../helpers/s3-server.ts'

const masterKey = new Uint8Array(32).fill(1)
const now = Date.parse('2026-11-20T12:00:00.123Z')
const name = sealedName(now)
const onStep = () => {}
let service: ReturnType<typeof startS3Server>
let folder: string

beforeEach(() => {
  service = startS3Server()
  folder = mkdtempSync(join(tmpdir(), 'otpd-bucket-'))
})
afterEach(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const open = ({ bucket = 'backups', endpoint = service.url, answerMs = 30_000 } = {}) =>
  openBucket(
    { bucket, prefix: 'otpd' },
    {
      settings: { endpoint, region: 'us-east-1', accessKeyId: 'AK' },
      secrets: { secretAccessKey: 'very secret', sessionToken: null },
    },
    { answerMs },
  )

/** Makes a database, with more than two parts of an upload if it is to be large. */
function makeDatabase(size: 'small' | 'large' = 'small') {
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  createTestDatabase(dataDir, masterKey)
  const { database } = dataFiles(dataDir)
  const connection = connect(database, 0)
  connection.run(`insert into meta (name, value) values ('filler', ?)`, [
    Buffer.from(crypto.getRandomValues(new Uint8Array(65_536))).toString('base64'),
  ])
  if (size === 'large')
    for (let index = 0; index < 150; index++)
      connection.run(`insert into meta (name, value) values ('filler ${index}', hex(randomblob(65536)))`)
  connection.close()
  return database
}

const send = (database: string, bucket = open()) =>
  sendSealedBackup(bucket, { database, folder, masterKey, now, onStep })

const reason = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof Error && 'reason' in error ? error.reason : error),
  )

/** Files in the folder other than the data directory. */
const leftovers = () => readdirSync(folder).filter((file) => file !== 'data')

describe('a sealed backup in a bucket', () => {
  test.each(['small', 'large'] as const)(
    'is read back, listed as verified, and opens again: %s',
    async (size) => {
      const database = makeDatabase(size)
      const bucket = open()
      const backup = await send(database, bucket)
      expect(backup).toMatchObject({ file: `s3://backups/otpd/${name}`, rows: { accounts: 0 } })
      expect(leftovers()).toEqual([])
      const isMultipart = service.calls.some(({ query }) => query.has('partNumber'))
      expect(isMultipart).toBe(size === 'large')
      const [listed, ...others] = await listBucket(bucket, [masterKey])
      expect([listed, others]).toMatchObject([{ name, at: now, bytes: backup.bytes, state: 'verified' }, []])
      expect(service.objects.get(`otpd/${name}`)?.includes('SQLite')).toBe(false)
      const file = join(folder, 'opened.db')
      await fetchSealedBackup(bucket, { name, bytes: backup.bytes }, [masterKey], { file, onStep })
      const hash = new Bun.CryptoHasher('sha256').update(await Bun.file(file).bytes()).digest('hex')
      expect(hash).toBe(backup.sha256)
    },
  )

  test('never gets its name when the upload fails in the middle, however it fails', async () => {
    const database = makeDatabase('large')
    for (const failure of [
      () => s3Error(500, 'InternalError', 'We encountered an internal error.'),
      () => s3Error(403, 'AccessDenied', 'Access Denied'),
      () => new Response('', { status: 502 }),
    ]) {
      service.failWith(({ query }) => (query.get('partNumber') === '2' ? failure() : undefined))
      expect(await reason(send(database))).toMatch(/^(STORAGE_FAILED|ACCESS_REFUSED)$/)
      expect([...service.objects.keys()]).toEqual([])
      expect(leftovers()).toEqual([])
    }
    // Completing an upload is a POST with its id.
    expect(service.calls.filter(({ method, query }) => method === 'POST' && query.has('uploadId'))).toEqual(
      [],
    )
  })

  test('is not noted as verified when it reads back differently', async () => {
    const database = makeDatabase()
    let isChanged = false
    service.failWith(({ method, key }) => {
      const object = method === 'GET' ? service.objects.get(key) : undefined
      if (object && !isChanged) {
        object[headerBytes + 5] = (object[headerBytes + 5] ?? 0) ^ 1
        isChanged = true
      }
      return undefined
    })
    expect(await reason(send(database))).toBe('BACKUP_FORGED')
    service.failWith(() => undefined)
    expect(await listBucket(open(), [masterKey])).toMatchObject([{ name, state: 'unverified' }])
  })

  test('that carries the name of a newer one is refused', async () => {
    const database = makeDatabase()
    const bucket = open()
    const { bytes } = await send(database, bucket)
    const newer = sealedName(now + 1)
    service.objects.set(`otpd/${newer}`, service.objects.get(`otpd/${name}`) ?? Buffer.alloc(0))
    const file = join(folder, 'opened.db')
    const fetched = fetchSealedBackup(bucket, { name: newer, bytes }, [masterKey], { file, onStep })
    await expect(fetched).rejects.toMatchObject({
      reason: 'BACKUP_FORGED',
      message: expect.stringContaining('has the name of another backup'),
    })
  })

  test('of another master key, and objects that otpd did not name, are told apart', async () => {
    const database = makeDatabase()
    const bucket = open()
    await send(database, bucket)
    for (const key of ['otpd/notes.txt', 'otpd/deeper/x', 'other/x', `otpd/${sealedName(now - 1)}`])
      service.objects.set(key, Buffer.from('not ours'))
    const states = async (key: Uint8Array) =>
      (await listBucket(bucket, [key])).map((backup) => [backup.name, backup.state])
    const foreign = [sealedName(now - 1), 'another key']
    expect(await states(masterKey)).toEqual([foreign, [name, 'verified']])
    expect(await states(new Uint8Array(32).fill(9))).toEqual([foreign, [name, 'another key']])
    await removeFromBucket(bucket, { name })
    expect([...service.objects.keys()].filter((key) => key.includes(name))).toEqual([])
  })
})

describe('an S3 service that refuses or fails', () => {
  test.each([
    [404, 'NoSuchBucket', 'BUCKET_MISSING'],
    [403, 'AccessDenied', 'ACCESS_REFUSED'],
    [403, 'SignatureDoesNotMatch', 'ACCESS_REFUSED'],
    [403, 'InvalidAccessKeyId', 'ACCESS_REFUSED'],
    [403, 'RequestTimeTooSkewed', 'CLOCK_WRONG'],
    [503, 'SlowDown', 'STORAGE_FAILED'],
  ])('%d %s is %s, with its own word and without the secret', async (status, code, expected) => {
    service.failWith(() => s3Error(status, code, 'In its own words.'))
    const error: unknown = await open()
      .list()
      .catch((caught: unknown) => caught)
    expect(error).toMatchObject({
      reason: expected,
      message: expect.stringContaining(`${code} (In its own words)`),
    })
    expect(Bun.inspect(error)).not.toContain('very secret')
  })

  test('without a text, or without a service, is worded too', async () => {
    service.failWith(() => new Response('', { status: 500 }))
    await expect(open().list()).rejects.toMatchObject({ reason: 'STORAGE_FAILED' })
    await expect(open({ endpoint: 'http://127.0.0.1:1' }).list()).rejects.toMatchObject({
      reason: 'STORAGE_UNREACHABLE',
      message: 'the service at http://127.0.0.1:1 refuses connections (ConnectionRefused)',
    })
  })

  test('that does not answer is given up', async () => {
    service.failWith(() => new Promise<Response>(() => {}))
    await expect(open({ answerMs: 50 }).list()).rejects.toMatchObject({ reason: 'STORAGE_TIMEOUT' })
  })

  test('is noticed before the database is copied', async () => {
    const database = makeDatabase()
    expect(await reason(send(database, open({ bucket: 'missing' })))).toBe('BUCKET_MISSING')
    expect(service.calls.map(({ method }) => method)).toEqual(['GET'])
  })

  test('needs credentials', () => {
    const settings = { endpoint: service.url, region: 'us-east-1', accessKeyId: null }
    expect(() => openBucket({ bucket: 'backups', prefix: '' }, { settings, secrets: null })).toThrow(
      'there are no credentials for s3://backups',
    )
  })
})
