import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKeeper } from '../../src/tls/keeper.ts'
import type { InspectedPair } from '../../src/tls/pair.ts'
import { readFailure } from '../../src/tls/saved.ts'
import type { CertificateSource } from '../../src/tls/source.ts'
import { startAcmeServer, type AcmeServer } from '../helpers/acme-server.ts'
import { hasOpenssl } from '../helpers/webhook-receiver.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const minuteMs = hourMs / 60

describe.skipIf(!hasOpenssl)('the keeper of a certificate', () => {
  let folder: string
  let now: number
  let ca: AcmeServer
  let served: InspectedPair[]
  let outcomes: string[]
  let lines: { level: string; msg: string; fields: Readonly<Record<string, unknown>> }[]
  const challenges = new Map<string, string>()
  const keepers: CertificateSource[] = []

  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), 'otpd-keeper-')), 'tls')
    now = Date.now()
    ;[served, outcomes, lines] = [[], [], []]
    ca = startAcmeServer((token) => challenges.get(token))
  })
  afterEach(async () => {
    for (const keeper of keepers.splice(0)) keeper.stop()
    await ca.stop()
    challenges.clear()
    rmSync(join(folder, '..'), { recursive: true, force: true })
  })

  function open(
    options: { domains?: string[]; answers?: boolean; directoryUrl?: string; refuse?: () => boolean } = {},
  ) {
    const log = (level: string) => (msg: string, fields: Readonly<Record<string, unknown>>) =>
      void lines.push({ level, msg, fields })
    const keeper = createKeeper({
      domains: options.domains ?? ['otp.test', 'www.otp.test'],
      email: 'ops@otp.test',
      directoryUrl: options.directoryUrl ?? ca.directoryUrl,
      directoryCa: null,
      folder,
      version: 'test',
      wall: { now: () => now },
      log: { info: log('info'), warn: log('warn'), error: log('error') },
      onPair(next) {
        if (options.refuse?.()) throw new Error('the port is taken')
        served.push(next)
      },
      onOutcome: (outcome) => void outcomes.push(outcome),
      answer(token, text) {
        if (options.answers !== false) challenges.set(token, text)
        return () => void challenges.delete(token)
      },
    })
    keepers.push(keeper)
    return keeper
  }
  const errors = () => lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)

  test('obtains one certificate for all names, and keeps it for its owner only', async () => {
    const keeper = open()
    expect(keeper.first).toBeUndefined()
    await keeper.look(false)
    const [pair] = served
    const x509 = new X509Certificate(pair?.pair.certificate ?? '')
    expect(x509.subjectAltName).toBe('DNS:otp.test, DNS:www.otp.test')
    expect(x509.verify(new X509Certificate(ca.root).publicKey)).toBe(true)
    expect(pair?.pair.certificate.split('BEGIN CERTIFICATE')).toHaveLength(3)
    expect(outcomes).toEqual(['renewed'])
    expect(readdirSync(folder).toSorted()).toEqual(['account.json', 'certificate.json'])
    const modes = [folder, ...readdirSync(folder).map((name) => join(folder, name))].map(
      (path) => statSync(path).mode & 0o777,
    )
    expect(modes).toEqual([0o700, 0o600, 0o600])
    expect(challenges.size).toBe(0)
    expect(ca.requests[0]?.payload).toEqual({ termsOfServiceAgreed: true, contact: ['mailto:ops@otp.test'] })
  })

  test('serves the saved certificate after a restart, unless it is for other names, of another directory, or has ended', async () => {
    await open().look(false)
    expect(open().first?.pair).toEqual(served[0]?.pair)
    expect(open({ domains: ['www.otp.test'] }).first).toBeDefined()
    expect(open({ domains: ['other.test'] }).first).toBeUndefined()
    expect(open({ directoryUrl: 'https://other.test/directory' }).first).toBeUndefined()
    now += 91 * dayMs
    expect(open().first).toBeUndefined()
  })

  test('serves the saved certificate of some of the names until there is one of all', async () => {
    await open({ domains: ['otp.test'] }).look(false)
    const keeper = open({ answers: false })
    expect(keeper.first?.facts.names).toEqual(['otp.test'])
    await keeper.look(false)
    expect([errors().length, served.length]).toEqual([1, 1])
    const answering = open()
    await answering.look(false)
    expect(served[1]?.facts.names).toEqual(['otp.test', 'www.otp.test'])
    const order = ca.requests.findLast(({ path }) => path === '/order')
    expect(order?.payload).not.toHaveProperty('replaces')
    await answering.look(false)
    expect(served).toHaveLength(2)
  })

  test('renews when a third of the lifetime is left, with the same account', async () => {
    const keeper = open()
    await keeper.look(false)
    now += 59 * dayMs
    await keeper.look(false)
    expect(ca.orders).toHaveLength(1)
    now += 2 * dayMs
    await keeper.look(false)
    expect(ca.orders).toHaveLength(2)
    expect(ca.accounts).toHaveLength(1)
    expect(served).toHaveLength(2)
    expect(served[1]?.pair.key).not.toBe(served[0]?.pair.key)
  })

  test('renews in the window that the authority suggests, and says which certificate it replaces', async () => {
    const day = (count: number) => new Date(now + count * dayMs).toISOString()
    ca.setRenewalInfo({ start: day(10), end: day(11) })
    const keeper = open()
    await keeper.look(false)
    now += 9 * dayMs
    await keeper.look(false)
    expect(ca.orders).toHaveLength(1)
    now += 2 * dayMs
    await keeper.look(false)
    expect(ca.orders).toHaveLength(2)
    const order = ca.requests.findLast(({ path }) => path === '/order')
    expect(order?.payload['replaces']).toMatch(/^[\w-]+\.[\w-]+$/)
  })

  test('makes a new account if its key is lost or damaged', async () => {
    const keeper = open()
    await keeper.look(false)
    rmSync(join(folder, 'account.json'))
    now += 61 * dayMs
    await keeper.look(false)
    writeFileSync(join(folder, 'account.json'), '{"kty":"EC"}')
    now += 91 * dayMs
    await keeper.look(false)
    expect(served).toHaveLength(3)
    expect(ca.accounts).toHaveLength(3)
  })

  test('repeats a request whose nonce is refused', async () => {
    for (let count = 0; count < 3; count++) ca.refuseNext('order', { type: 'badNonce', detail: 'old' })
    await open().look(false)
    expect(outcomes).toEqual(['renewed'])
  })

  test('orders again if the authority says that the certificate was replaced already', async () => {
    ca.setRenewalInfo({ start: new Date(now).toISOString(), end: new Date(now).toISOString() })
    const keeper = open()
    await keeper.look(false)
    ca.refuseNext('order', { type: 'alreadyReplaced', detail: 'replaced', status: 409 })
    now += 61 * dayMs
    await keeper.look(false)
    expect(outcomes).toEqual(['renewed', 'renewed'])
  })

  test("logs the authority's own words, and tries again after minutes, then after hours, up to a day", async () => {
    const keeper = open()
    const waits: number[] = []
    for (let tries = 0; tries < 11; tries++) {
      ca.refuseNext('order', { type: 'rejectedIdentifier', detail: 'Not for this name.', status: 403 })
      await keeper.look(false)
      const nextTry = errors().at(-1)?.['nextTry']
      const at = nextTry instanceof Date ? nextTry.getTime() : 0
      waits.push((at - now) / minuteMs)
      expect(readFailure(folder)).toEqual({ error: 'rejectedIdentifier: Not for this name.', nextTry: at })
      now = at - 1
      await keeper.look(false)
      now = at
    }
    expect(waits).toEqual([1, 2, 5, 15, ...[1, 2, 4, 8, 16, 24, 24].map((hours) => hours * 60)])
    expect(errors()[0]).toMatchObject({ error: 'rejectedIdentifier: Not for this name.' })
    expect(errors()).toHaveLength(11)
    await keeper.look(false)
    expect(outcomes.at(-1)).toBe('renewed')
    expect(readFailure(folder)).toBeNull()
  })

  test('waits for as long as the authority says, but not if the operator asks', async () => {
    ca.refuseNext('order', {
      type: 'rateLimited',
      detail: 'Later.',
      status: 429,
      headers: { 'retry-after': '172800' },
    })
    const keeper = open()
    await keeper.look(false)
    now += 47 * hourMs
    await keeper.look(false)
    expect(served).toEqual([])
    ca.refuseNext('order', { type: 'rateLimited', detail: 'Later.', status: 429 })
    await keeper.look(true)
    expect(readFailure(folder)?.nextTry).toBe(now + hourMs)
    await keeper.look(true)
    expect(served).toHaveLength(1)
  })

  test('says which challenge failed, and after a minute what usually is wrong', async () => {
    const keeper = open({ answers: false })
    await keeper.look(false)
    expect(errors()[0]).toMatchObject({ error: 'unauthorized: the key authorization does not match' })
    now += 61_000
    await keeper.look(false)
    await keeper.look(false)
    expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { msg: expect.stringContaining('port 80') },
    ])
  })

  test('says so if the directory cannot be reached, and keeps what it has', async () => {
    const keeper = open()
    await keeper.look(false)
    await ca.stop()
    now += 61 * dayMs
    await keeper.look(false)
    expect(errors()[0]?.['error']).toMatch(
      /^127\.0\.0\.1:\d+ cannot be reached \((connection refused, ECONNREFUSED|ConnectionRefused)\)$/,
    )
    expect(JSON.parse(readFileSync(join(folder, 'certificate.json'), 'utf8')).certificate).toBe(
      served[0]?.pair.certificate,
    )
  })

  test('keeps a certificate that cannot be served yet, instead of ordering more of them', async () => {
    let isRefused = true
    const keeper = open({ refuse: () => isRefused })
    await keeper.look(false)
    expect(errors()[0]?.['error']).toBe('the port is taken')
    expect(open().first).toBeDefined()
    isRefused = false
    now += hourMs
    await keeper.look(false)
    expect([served.length, ca.orders.length]).toEqual([1, 1])
    // Nor if it cannot be saved: `certificate.json.new` is a folder.
    mkdirSync(join(folder, 'certificate.json.new', 'x'), { recursive: true })
    now += 61 * dayMs
    await keeper.look(false)
    rmSync(join(folder, 'certificate.json.new'), { recursive: true })
    now += hourMs
    await keeper.look(false)
    expect([served.length, ca.orders.length]).toEqual([2, 2])
    expect(open().first?.pair).toEqual(served[1]?.pair)
  })

  test('does not wait for a time that a wrong clock named', async () => {
    ca.refuseNext('order', { type: 'unauthorized', detail: 'no' })
    const keeper = open()
    now += 3650 * dayMs
    await keeper.look(false)
    expect(outcomes).toEqual(['failed'])
    now -= 3650 * dayMs
    await keeper.look(false)
    expect(outcomes).toEqual(['failed', 'renewed'])
  })

  test('never logs a key', async () => {
    const keeper = open()
    await keeper.look(false)
    const key = served[0]?.pair.key.split('\n')[1] ?? ''
    const account: { d: string } = JSON.parse(readFileSync(join(folder, 'account.json'), 'utf8'))
    const text = JSON.stringify(lines)
    expect([key.length > 40, text.includes(key), text.includes(account.d)]).toEqual([true, false, false])
  })
})
