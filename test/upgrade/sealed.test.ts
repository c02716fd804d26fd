import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath } from '../helpers/binary.ts'
import { findTraces } from '../helpers/traces.ts'
import { readFixture, unpackDatabase } from './fixture.ts'
import { callApi, requestTokens } from './http.ts'
import { runCommand, startInstance, type InstanceOptions } from './instance.ts'
import { listAt, textAt } from './json.ts'

// A database of 0.1.0 holds phones and secrets in plain text. The server seals it in the background, also if it is killed,
// and leaves none in the file.

const folder = mkdtempSync(join(tmpdir(), 'otpd-resealed-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a database of 0.1.0', () => {
  const options: InstanceOptions = { binary: binaryPath, folder, gatewayUrl: 'http://127.0.0.1:9' }
  const database = join(folder, 'data', 'otpd.db')
  const backups = join(folder, 'data', 'backups')

  const doctor = async () =>
    (await runCommand(options, ['doctor', '--json', '--server', 'http://127.0.0.1:9'])).stdout

  test('is sealed in the background, and nothing plain is left in its files', async () => {
    unpackDatabase('0.1.0', folder)
    const plain = listPlainValues(database)
    const sent = listRequestsByPhone(database, 'ada@example.com')
    expect(Object.values(sent).some((ids) => ids.length > 2)).toBe(true)
    expect(plain.length).toBeGreaterThan(20)
    expect(findTraces(database, plain)).toEqual(plain)

    // The first batch is due two seconds after the start.
    for (const afterMs of [0, 2_010, 2_030, 2_060]) {
      const killed = await startInstance(options)
      await new Promise((resolve) => setTimeout(resolve, afterMs))
      await killed.kill()
    }
    const instance = await startInstance(options)
    while (!(await doctor()).includes('all stored data is encrypted with the newest key'));
    for (const path of [database, `${database}-wal`].filter(existsSync))
      expect([path, findTraces(path, plain)]).toEqual([path, []])
    const backup = join(backups, 'new.db')
    expect((await instance.run(['backup', backup])).exitCode).toBe(0)
    expect(findTraces(backup, plain)).toEqual([])
    expect(await searchPhones(instance.url, sent)).toEqual(sent)
    await instance.stop()
    expect(findTraces(database, plain)).toEqual([])

    const [unsealed = ''] = readdirSync(backups).filter((name) => /^before-migration-.*\.db$/.test(name))
    expect(findTraces(join(backups, unsealed), plain)).toEqual(plain)
    expect(await doctor()).toContain(`these hold phone numbers and secrets in plain text: ${unsealed}"`)
  }, 120_000)
})

/** Lists the phones, addresses, metadata and webhook secrets of a database from before they were sealed. */
function listPlainValues(path: string): string[] {
  const connection = new Database(path)
  try {
    const read = (query: string) => connection.query<{ value: string }, []>(query).all()
    const rows = [
      ...read(`select phone as value from otp_requests where phone like '+%' and phone not like '+999%'`),
      ...read('select client_ip as value from otp_requests where client_ip is not null'),
      ...read('select webhook_secret as value from applications'),
      ...read(
        `select each.value as value from otp_requests, json_each(metadata) as each where metadata is not null`,
      ),
    ]
    return [...new Set(rows.map(({ value }) => String(value)))].filter((value) => value.length > 5)
  } finally {
    connection.close()
  }
}

type RequestsByPhone = Record<string, string[]>

/** Lists the ids of a developer's requests by number, newest first. */
function listRequestsByPhone(path: string, email: string): RequestsByPhone {
  const connection = new Database(path)
  try {
    const rows = connection
      .query<{ phone: string; ids: string }, [string]>(
        `select phone, json_group_array(id order by id desc) as ids from otp_requests
         where phone like '+%' and developer_id = (
           select number from short_ids join developers on developers.id = short_ids.id where email = ?)
         group by phone`,
      )
      .all(email)
    return Object.fromEntries(rows.map(({ phone, ids }) => [phone, JSON.parse(ids) as string[]]))
  } finally {
    connection.close()
  }
}

/** Searches the requests of numbers through the API. */
async function searchPhones(url: string, expected: RequestsByPhone) {
  const { email = '', password = '' } = readFixture('0.1.0').accounts['ada'] ?? {}
  const login = { grant_type: 'password', username: email, password }
  const token = textAt((await requestTokens(url, login)).body, 'id_token')
  const headers = { authorization: `Bearer ${token}` }
  const found: RequestsByPhone = {}
  for (const phone of Object.keys(expected)) {
    const { body } = await callApi(url, `/v1/otp?limit=200&phone=${encodeURIComponent(phone)}`, { headers })
    found[phone] = listAt(body, 'data').map((request) => textAt(request, 'id'))
  }
  return found
}
