import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccounts } from '../../src/auth/identity.ts'
import type { Config } from '../../src/config/config.ts'
import { hostOrigin } from '../../src/domain/model/audit.ts'
import { deriveKeys, testKeys } from '../helpers/keys.ts'
import { createIds } from '../../src/domain/model/ids.ts'
import { openHost, type Host } from '../../src/host/host.ts'
import { dataFiles, prepareDataDir } from '../../src/store/data-dir/data-dir.ts'
import { acquireLock } from '../../src/store/data-dir/lock.ts'
import { openSqlite } from '../../src/store/sqlite/database.ts'
import { createStore } from '../../src/store/store.ts'
import { requireConfig, loadEnv } from '../helpers/config.ts'
import { createTestDatabase } from '../helpers/data-dir.ts'
import { unlimitedPlan } from '../helpers/plans.ts'

let folder: string
let dataDir: string
let host: Host | undefined
const password = 'correct horse battery'
const plans = {
  free: { ...unlimitedPlan, projects: 10, applications: 5, sendPerMinute: 5, verifyPerMinute: 10 },
}
const external = { issuer: 'https://idp.example', audience: ['client-1'], jwksUri: null, clientId: null }
const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-host-'))
  dataDir = join(folder, 'data')
})
afterEach(async () => {
  await host?.close()
  host = undefined
  rmSync(folder, { recursive: true, force: true })
})

async function open(changes: Partial<Config> = {}): Promise<Host> {
  await host?.close()
  const config = requireConfig(loadEnv({ OTPD_DATA_DIR: dataDir }))
  prepareDataDir(dataDir, () => {})
  createTestDatabase(dataDir)
  host = await openHost({ config: { ...config, ...changes }, access: 'write' })
  return host
}

describe('an account', () => {
  test('is created on files without access for other users', async () => {
    const createdAccount = await (
      await open()
    ).createAccount({ email: 'Ada@example.com', name: 'Ada', password })
    expect(createdAccount).toMatchObject({
      email: 'ada@example.com',
      name: 'Ada',
      plan: 'free',
      status: 'active',
    })
    expect(createdAccount.id).toStartWith('dev_')
    expect(createdAccount.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
    for (const path of [dataFiles(dataDir).database, dataFiles(dataDir).masterKey]) {
      expect(statSync(path).mode & 0o777).toBe(0o600)
    }
    expect(await (await open()).listAccounts()).toEqual([createdAccount])
  })

  test('needs a data directory, which development mode does not have', async () => {
    await expect(open({ dataDir: null })).rejects.toMatchObject({ name: 'StartRefused' })
  })
})

describe('while a server runs', () => {
  test('writes to its database, and the server sees the change immediately', async () => {
    await open()
    await host?.close()
    const lock = acquireLock(dataFiles(dataDir).lock)
    expect(lock).toBeDefined()
    const server = openSqlite(dataFiles(dataDir).database, { onDiskFault: () => {} })
    const store = createStore(server, { keys: testKeys })
    const clock = { now: () => Date.now() }
    const keys = deriveKeys(Buffer.alloc(32, 7))
    const { accounts } = createAccounts({ store, clock, newId: createIds(clock, random), random, keys })
    try {
      const [firstAccount] = await Promise.all([
        (await open()).createAccount({ email: 'ada@example.com', password }),
        accounts.create({ email: 'server@example.com', password }),
      ])
      expect(
        await accounts.authenticate('ada@example.com', password, { network: '', origin: hostOrigin }),
      ).toMatchObject({ developer: { id: firstAccount.id } })
      expect(await host?.listAccounts()).toHaveLength(2)
    } finally {
      await server.close()
      lock?.release()
    }
  })

  test('does not hold the lock, so that the next server can start', async () => {
    await open()
    const lock = acquireLock(dataFiles(dataDir).lock)
    expect(lock).toBeDefined()
    lock?.release()
  })
})

describe('with the built-in provider', () => {
  test('an account needs a password and a unique e-mail address', async () => {
    const { createAccount } = await open()
    await createAccount({ email: 'ada@example.com', password })
    await expect(createAccount({ email: 'ada@example.com', password })).rejects.toMatchObject({
      reason: 'EMAIL_TAKEN',
    })
    await expect(createAccount({ email: 'bob@example.com' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await expect(createAccount({ email: 'bob@example.com', password: 'short' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    expect(await host?.listAccounts()).toHaveLength(1)
  })

  test('a setup token is valid for 30 minutes', async () => {
    const { token, expiresAt } = await (await open()).createSetupToken()
    expect(token).toStartWith('st_')
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(29 * 60_000)
  })

  test('resetting a password needs an account', async () => {
    const { createAccount, resetPassword } = await open()
    const { id } = await createAccount({ email: 'ada@example.com', password })
    expect(await resetPassword('ADA@example.com', 'another password!')).toMatchObject({ id })
    await expect(resetPassword('bob@example.com', password)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('rotating the signing key gives a new one each time', async () => {
    const { rotateSigningKey } = await open()
    const [one, two] = [await rotateSigningKey(), await rotateSigningKey()]
    expect(one.kid).not.toBe(two.kid)
  })
})

describe('a developer', () => {
  test('is found by e-mail address or id, and can only get a plan that exists', async () => {
    const pro = { ...plans.free, projects: 100 }
    const { createAccount, setPlan } = await open({ plans: { ...plans, pro } })
    const { id } = await createAccount({ email: 'ada@example.com', password })
    expect(await setPlan('Ada@example.com', 'pro')).toMatchObject({ id, plan: 'pro' })
    expect(await setPlan(id, 'free')).toMatchObject({ plan: 'free' })
    await expect(setPlan(id, 'toString')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(setPlan('bob@example.com', 'pro')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('is disabled and enabled', async () => {
    const { createAccount, disable, enable } = await open()
    const { id } = await createAccount({ email: 'ada@example.com', password })
    expect(await disable(id)).toMatchObject({ status: 'disabled' })
    expect(await enable('ada@example.com')).toMatchObject({ status: 'active' })
  })
})

describe('a deleted account', () => {
  test('leaves an anonymized row, and its e-mail address can be used again', async () => {
    const { createAccount, deleteAccount, enable, listAccounts } = await open()
    const { id } = await createAccount({ email: 'ada@example.com', name: 'Ada', password })
    expect(await deleteAccount('Ada@example.com')).toEqual({ id, projects: 0, applications: 0 })
    expect(await listAccounts()).toMatchObject([{ id, email: null, name: null, status: 'deleted' }])
    for (const account of [id, 'ada@example.com']) {
      await expect(deleteAccount(account)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(enable(account)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    expect((await createAccount({ email: 'ada@example.com', password })).id).not.toBe(id)
  })

  test('with an external provider no longer knows its subject', async () => {
    const { createAccount, deleteAccount, listAccounts } = await open({ oidc: external })
    const { id } = await createAccount({ email: 'ada@example.com' })
    await deleteAccount(id)
    await createAccount({ email: 'ada@example.com' })
    expect((await listAccounts()).map(({ status }) => status)).toEqual(['deleted', 'invited'])
  })
})

describe('a token of the operator', () => {
  const readIssuer = ({ idToken }: { idToken: string }) =>
    JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString()).iss

  test('has the URL of the running server as its issuer, else the public URL, the named one or the listening address', async () => {
    await (await open()).createAccount({ email: 'ada@example.com', password })
    const token = await (await open()).issueToken('ada@example.com')
    expect(readIssuer(token)).toBe('http://127.0.0.1:8080/v1/auth')
    expect(Date.parse(token.expiresAt) - Date.now()).toBeLessThanOrEqual(15 * 60_000)
    const free = { listen: { host: '127.0.0.1', port: 0 } }
    await expect((await open(free)).issueToken('ada@example.com')).rejects.toMatchObject({
      reason: 'SERVER_UNKNOWN',
    })
    const issuedToken = await (
      await open(free)
    ).issueToken('ada@example.com', { named: 'http://127.0.0.1:9' })
    expect(readIssuer(issuedToken)).toBe('http://127.0.0.1:9/v1/auth')
    const shown = await open({ publicUrl: 'https://otp.example' })
    expect(readIssuer(await shown.issueToken('ada@example.com', { named: 'http://127.0.0.1:9' }))).toBe(
      'https://otp.example/v1/auth',
    )
    expect(readIssuer(await shown.issueToken('ada@example.com', { running: 'http://127.0.0.1:7' }))).toBe(
      'http://127.0.0.1:7/v1/auth',
    )
  })

  test('is refused for a disabled account and with an external provider', async () => {
    const { createAccount, disable, issueToken } = await open()
    await createAccount({ email: 'ada@example.com', password })
    await disable('ada@example.com')
    await expect(issueToken('ada@example.com')).rejects.toMatchObject({ reason: 'ACCOUNT_DISABLED' })
    await expect((await open({ oidc: external })).issueToken('ada@example.com')).rejects.toMatchObject({
      reason: 'EXTERNAL_PROVIDER',
    })
  })
})

describe('with an external provider', () => {
  test('an account waits for its first login and has no password', async () => {
    const { createAccount, listAccounts } = await open({ oidc: external })
    const invitedAccount = await createAccount({ email: 'Ada@example.com', name: 'Ada' })
    expect(invitedAccount).toMatchObject({ email: 'ada@example.com', status: 'invited' })
    await expect(createAccount({ email: 'ada@example.com' })).rejects.toMatchObject({ reason: 'EMAIL_TAKEN' })
    await expect(createAccount({ email: 'not an address' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await expect(createAccount({ email: 'bob@example.com', password })).rejects.toMatchObject({
      reason: 'EXTERNAL_PROVIDER',
    })
    expect(await listAccounts()).toEqual([invitedAccount])
  })

  test('there are no setup tokens, passwords or signing keys', async () => {
    const { createSetupToken, resetPassword, rotateSigningKey } = await open({ oidc: external })
    for (const refused of [
      createSetupToken(),
      resetPassword('ada@example.com', password),
      rotateSigningKey(),
    ]) {
      await expect(refused).rejects.toMatchObject({ code: 'CONFLICT', reason: 'EXTERNAL_PROVIDER' })
    }
  })
})

test('a wrong master key is refused before anything is written', async () => {
  await open()
  const other = {
    masterKey: new Uint8Array(32).fill(9),
    masterKeySource: 'OTPD_MASTER_KEY',
    adminPassword: null,
    s3: null,
  }
  await expect(open({ secrets: other })).rejects.toMatchObject({ name: 'StartRefused' })
  expect(existsSync(dataFiles(dataDir).database)).toBe(true)
})

describe('the audit trail', () => {
  test('records what the operator did, without passwords and e-mail addresses', async () => {
    const opened = await open()
    const { id } = await opened.createAccount({ email: 'ada@example.com', password })
    await opened.setPlan('ada@example.com', 'free')
    await opened.disable(id)
    await opened.enable(id)
    await opened.resetPassword('ada@example.com', 'another horse battery')
    await opened.issueToken(id, { named: 'http://127.0.0.1:1' })
    await opened.createSetupToken()
    const kid = (await opened.rotateSigningKey()).kid
    await opened.deleteAccount(id)
    const entries = (await opened.listAudit({ limit: 20 })).toReversed()
    expect(entries.map(({ action, developerId, targetId }) => [action, developerId, targetId])).toEqual([
      ['account.created', id, id],
      ['account.plan_changed', id, id],
      ['account.disabled', id, id],
      ['account.enabled', id, id],
      ['password.reset', id, id],
      ['token.issued', id, id],
      ['setup_token.created', null, null],
      ['signing_key.rotated', null, kid],
      ['account.deleted', id, id],
    ])
    for (const entry of entries) expect(entry).toMatchObject({ source: 'host', actorId: null, ip: null })
    expect(JSON.stringify(entries)).not.toMatch(/horse|ada@example/)
  })
})

describe('an erasure', () => {
  test('leaves no byte of the number in the files, free pages included', async () => {
    await open()
    await host?.close()
    const phone = '+14155550177'
    const { database: path } = dataFiles(dataDir)
    const server = openSqlite(path, { onDiskFault: () => {} })
    const event = {
      type: 'otp.sent',
      developerId: 'dev_x',
      appId: null,
      requestId: null,
      status: null,
    } as const
    const identity = {
      developerId: 'dev_x',
      country: null,
      verificationCount: 1,
      firstVerifiedAt: 1,
      lastVerifiedAt: 1,
    }
    await server.write(async (tx) => {
      const { developers, events, identities } = server.tables
      const times = { tokensValidFrom: 0, createdAt: 1, updatedAt: 1 }
      await tx
        .insert(developers)
        .values({ id: 'dev_x', plan: 'free', virtualPhone: '+9990000000001', status: 'active', ...times })
      for (let seq = 1; seq <= 50; seq++) {
        const payload = JSON.stringify({ data: { phone, note: 'x'.repeat(seq * 100), metadata: null } })
        await tx
          .insert(events)
          .values({ ...event, seq, id: `evt_${seq}`, phone, payload, detail: null, at: 1 })
      }
      await tx.insert(identities).values({ ...identity, id: 'idn_x', phone })
    })
    await server.close()
    const holders = () =>
      readdirSync(dataDir).filter((name) => readFileSync(join(dataDir, name)).includes(phone))
    expect(holders()).not.toEqual([])

    expect(await (await open()).erase(phone)).toEqual({ otpRequests: 0, logEntries: 50, users: 1 })
    await host?.close()
    host = undefined
    expect(holders()).toEqual([])
  })
})
