import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../../src/server/start.ts'
import { dataFiles } from '../../src/store/data-dir/data-dir.ts'
import { requireConfig, loadEnv } from '../helpers/config.ts'
import { collectLog } from '../helpers/log.ts'
import { createSecretScenario, listEncodings, containsCode } from '../helpers/secret-scenario.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'

const life = createSecretScenario()
const { secrets, codes, refusals, phones } = life

let folder: string
let receiver: WebhookReceiver
let logText = ''
let files: Array<{ path: string; bytes: Buffer }> = []

const listFiles = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? listFiles(join(path, entry.name)) : [join(path, entry.name)],
  )

/** Runs a server from first start to last stop, with successful and failing requests. */
async function live() {
  receiver = await startReceiver()
  const log = collectLog('json', 'debug')
  const config = requireConfig(
    loadEnv({
      OTPD_DATA_DIR: folder,
      OTPD_LISTEN: '127.0.0.1:0',
      OTPD_LOG_LEVEL: 'debug',
      OTPD_WEBHOOK_ALLOW: '127.0.0.1',
      OTPD_SEND_PER_MINUTE: '0',
      OTPD_VERIFY_PER_MINUTE: '0',
      OTPD_CONSOLE_PER_MINUTE: '0',
      OTPD_LOOKUPS_PER_MINUTE: '0',
    }),
  )
  const server = await startServer(config, { log: log.log, version: '0.0.0-test' })

  await life.run({ url: server.url, setupToken: server.setupToken?.token }, receiver)

  await server.stop()
  logText = await log.text()
  secrets.set('master key', readFileSync(dataFiles(folder).masterKey, 'utf8').trim())
  const { masterKey, setupToken: setupTokenFile } = dataFiles(folder)
  files = listFiles(folder)
    .filter((path) => path !== masterKey && path !== setupTokenFile)
    .map((path) => ({ path, bytes: readFileSync(path) }))
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-secrets-'))
  await live()
}, 300_000)
afterAll(() => {
  receiver.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('the scenario covered secrets, codes, errors and files', () => {
  expect(secrets.size).toBeGreaterThanOrEqual(18)
  expect(codes.size).toBeGreaterThanOrEqual(3)
  expect(refusals.length).toBeGreaterThan(300)
  expect(receiver.received.length).toBeGreaterThan(0)
  expect(files.map(({ path }) => path)).toContain(dataFiles(folder).database)
  expect(files.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeGreaterThan(50_000)
})

describe('no secret appears', () => {
  test('in the log at debug level', () => {
    const lines = logText
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.filter(({ msg }) => msg === 'request')).toHaveLength(life.calls())
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
    const found = [...secrets].filter(([, secret]) =>
      listEncodings(secret).some((form) => logText.includes(form)),
    )
    expect(found.map(([name]) => name)).toEqual([])
    expect([...codes].filter((code) => containsCode(logText, code))).toEqual([])
    expect(logText).not.toContain('qUeRyToKeN')
  })

  test('in an error response', () => {
    const everything = refusals.map(({ text }) => text).join('\n')
    const found = [...secrets].filter(([, secret]) =>
      listEncodings(secret).some((form) => everything.includes(form)),
    )
    expect(found.map(([name]) => name)).toEqual([])
    expect([...codes].filter((code) => containsCode(everything, code))).toEqual([])
    expect(phones.filter((phone) => everything.includes(phone.slice(1)))).toEqual([])
  })

  test('in a file, except the master key and the setup token', () => {
    for (const { path, bytes } of files) {
      const text = bytes.toString('latin1')
      const found = [...secrets].filter(([, secret]) =>
        listEncodings(secret).some((form) => text.includes(form)),
      )
      expect({ path, found: found.map(([name]) => name) }).toEqual({ path, found: [] })
      expect([...codes].filter((code) => containsCode(text, code))).toEqual([])
    }
    // Other users of the machine cannot enter the directory.
    expect(statSync(folder).mode & 0o077).toBe(0)
  })
})

test('no phone number appears in the log', () => {
  for (const phone of phones) {
    expect(logText).not.toContain(phone.slice(1))
    expect(logText).not.toContain(phone.slice(-8))
  }
})
