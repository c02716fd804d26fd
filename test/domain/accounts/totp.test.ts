import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { createAccounts } from '../../../src/auth/identity.ts'
import type { AccountService } from '../../../src/domain/accounts/accounts.ts'
import type { TotpService } from '../../../src/domain/accounts/totp.ts'
import { hostOrigin, type Actor } from '../../../src/domain/model/audit.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import { deriveKeys } from '../../helpers/keys.ts'
import { totpCode, totpStep } from '../../../src/domain/model/totp.ts'
import { repairAfterClockRollback } from '../../../src/domain/upkeep/clock-rollback.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { decodeBase32 } from '../../helpers/base32.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testWorld } from '../../helpers/world.ts'

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
const clock = testClock()
const newId = createIds(clock, random)
const keys = deriveKeys(Buffer.alloc(32, 7))
const password = 'correct horse battery'
const stepMs = 30_000

describeEachDatabase('a second factor', (database) => {
  let store: Store
  let accounts: AccountService
  let totp: TotpService
  const setBack: Array<{ developerId: string; acceptedAgainAt: number }> = []
  let people = 0
  let networks = 0

  beforeAll(() => {
    store = createStore(database(), { keys })
    ;({ accounts, totp } = createAccounts({
      store,
      clock,
      newId,
      random,
      keys,
      world: testWorld,
      onTotpClockSetBack: (refused) => void setBack.push(refused),
    }))
  })
  beforeEach(() => clock.advance(3_600_000))

  const code = (secret: string, stepsOff = 0) =>
    totpCode(decodeBase32(secret), totpStep(clock.now()) + stepsOff)
  async function newDeveloper() {
    const email = `person-${(people += 1)}@example.com`
    const developer: Actor = { ...(await accounts.create({ email, password })), origin: hostOrigin }
    return { email, developer }
  }
  /** Creates an account with a second factor, whose current code is not used yet. */
  async function enroll() {
    const { email, developer } = await newDeveloper()
    const { secret } = await totp.propose(developer)
    const recoveryCodes = await totp.confirm(developer, code(secret))
    clock.advance(10 * stepMs)
    return { email, developer, secret, recoveryCodes }
  }
  const newClient = () => ({ network: `4:${(networks += 1)}`, origin: hostOrigin })
  const logIn = async (email: string, totpOrCode?: string, client = newClient()) => {
    const login = await accounts.authenticate(email, password, client, totpOrCode)
    return typeof login === 'object' ? login.method : login
  }
  const auditActions = async (developer: Actor) =>
    (await store.read.audit.list(developer.id, { limit: 50 })).map(({ action }) => action)

  test('is neither enabled nor removed by a session that a reset has just ended', async () => {
    const { email, developer } = await newDeveloper()
    const { secret } = await totp.propose(developer)
    await accounts.resetPassword(email, 'of the operator 7')
    await expect(totp.confirm(developer, code(secret))).rejects.toMatchObject({ reason: 'TOKEN_REVOKED' })
    await expect(totp.propose(developer)).rejects.toMatchObject({ reason: 'TOKEN_REVOKED' })

    const enrolled = await enroll()
    await accounts.resetPassword(enrolled.email, 'of the operator 7')
    await expect(totp.remove(enrolled.developer)).rejects.toMatchObject({ reason: 'TOKEN_REVOKED' })
    expect(await totp.isEnabled(enrolled.developer.id)).toBe(true)
  })

  test('is required of logins from its first code on', async () => {
    const { email, developer } = await newDeveloper()
    const { secret } = await totp.propose(developer)
    expect(await logIn(email)).toBe('password')
    expect(await totp.confirm(developer, code(secret))).toHaveLength(10)
    expect(await logIn(email)).toBe('mfa_required')
    clock.advance(stepMs)
    expect(await logIn(email, code(secret))).toBe('password+totp')
    expect(await auditActions(developer)).toContain('totp.enabled')
  })

  test('is not enabled by a wrong code, and a new proposal replaces the old one', async () => {
    const { email, developer } = await newDeveloper()
    await expect(totp.confirm(developer, '123456')).rejects.toMatchObject({ reason: 'TOTP_NOT_PROPOSED' })
    const { secret: old } = await totp.propose(developer)
    const { secret } = await totp.propose(developer)
    await expect(totp.confirm(developer, code(old))).rejects.toMatchObject({ details: [{ path: 'code' }] })
    expect(await logIn(email)).toBe('password')
    await totp.confirm(developer, code(secret))
    await expect(totp.propose(developer)).rejects.toMatchObject({ reason: 'TOTP_ENABLED' })
    await expect(totp.confirm(developer, code(secret))).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('its code works once, one step off, and with spaces', async () => {
    const { email, secret } = await enroll()
    const current = code(secret)
    expect(await logIn(email, `${current.slice(0, 3)} ${current.slice(3)}`)).toBe('password+totp')
    expect(await logIn(email, current)).toBeUndefined()
    expect(await logIn(email, code(secret, -1))).toBeUndefined()
    expect(await logIn(email, code(secret, 1))).toBe('password+totp')
    clock.advance(stepMs)
    expect(await logIn(email, code(secret))).toBeUndefined()
  })

  test('the code that enabled it does not log in', async () => {
    const { email, developer } = await newDeveloper()
    const { secret } = await totp.propose(developer)
    await totp.confirm(developer, code(secret))
    expect(await logIn(email, code(secret))).toBeUndefined()
  })

  test('of concurrent logins with one code, one succeeds', async () => {
    const { email, secret, recoveryCodes } = await enroll()
    for (const one of [code(secret), recoveryCodes[0]]) {
      const logins = await Promise.all(Array.from({ length: 6 }, () => logIn(email, one)))
      expect(logins.filter((method) => method !== undefined)).toHaveLength(1)
    }
  })

  test('each recovery code replaces a code once, however it is written', async () => {
    const { email, recoveryCodes } = await enroll()
    expect(new Set(recoveryCodes).size).toBe(10)
    for (const recoveryCode of recoveryCodes) expect(recoveryCode).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/)
    const [one = '', two = ''] = recoveryCodes
    expect(await logIn(email, one)).toBe('password+recovery_code')
    expect(await logIn(email, one)).toBeUndefined()
    expect(await logIn(email, two.toUpperCase().replaceAll('-', ' '))).toBe('password+recovery_code')
  })

  test('a wrong code is a failed login, a missing one is not', async () => {
    const { email, developer, secret } = await enroll()
    const client = newClient()
    for (let index = 0; index < 8; index += 1)
      expect(await logIn(email, undefined, client)).toBe('mfa_required')
    for (let index = 0; index < 5; index += 1)
      expect(await logIn(email, code(secret, 5 + index), client)).toBeUndefined()
    await expect(logIn(email, code(secret), client)).rejects.toMatchObject({ reason: 'LOGIN_ATTEMPTS' })
    const failures = (await auditActions(developer)).filter((action) => action === 'login.failed')
    expect(failures).toHaveLength(5)
    expect((await store.read.accounts.find(developer.id))?.failedLogins).toBe(5)
  })

  test('a code without the password is worth nothing, and is not used up', async () => {
    const { email, secret } = await enroll()
    const wrong = await accounts.authenticate(email, 'wrong horse battery', newClient(), code(secret))
    expect(wrong).toBeUndefined()
    expect(await logIn(email, code(secret))).toBe('password+totp')
  })

  test('is disabled with a code, a recovery code or the password, not without', async () => {
    for (const kind of ['code', 'recovery', 'password']) {
      const { email, developer, secret, recoveryCodes } = await enroll()
      const { network } = newClient()
      await expect(accounts.disableTotp(developer, { code: '000000' }, network)).rejects.toMatchObject({
        details: [{ path: 'code' }],
      })
      await expect(accounts.disableTotp(developer, { password: 'wrong' }, network)).rejects.toMatchObject({
        details: [{ path: 'password' }],
      })
      const codes = { code: code(secret), recovery: recoveryCodes[3] ?? '' }
      const proof =
        kind === 'password' ? { password } : { code: kind === 'code' ? codes.code : codes.recovery }
      await accounts.disableTotp(developer, proof, network)
      expect(await logIn(email)).toBe('password')
      expect(await auditActions(developer)).toEqual(
        expect.arrayContaining(['totp.disabled', 'totp.disable_failed']),
      )
      await expect(accounts.disableTotp(developer, { password }, network)).rejects.toMatchObject({
        reason: 'TOTP_NOT_ENABLED',
      })
    }
  })

  test('guesses at its removal are limited like logins', async () => {
    const { developer } = await enroll()
    const { network } = newClient()
    const guess = () => accounts.disableTotp(developer, { code: '000000' }, network)
    for (let index = 0; index < 5; index += 1)
      await expect(guess()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(guess()).rejects.toMatchObject({ reason: 'LOGIN_ATTEMPTS' })
  })

  test('a session has five guesses at its removal and at the password, from all networks, until the next login', async () => {
    const { email, developer, secret } = await enroll()
    const guess = () => accounts.disableTotp(developer, { code: '000000' }, newClient().network)
    const guessPassword = () =>
      accounts.changePassword(developer, 'wrong horse battery', 'right horse battery', newClient().network)
    const guesses = await Promise.allSettled([...Array.from({ length: 20 }, guess), guessPassword()])
    const judged = guesses.filter(
      (one) => one.status === 'rejected' && one.reason.code === 'INVALID_ARGUMENT',
    )
    expect(judged).toHaveLength(5)
    clock.advance(3_600_000)
    await expect(guessPassword()).rejects.toMatchObject({ reason: 'LOGIN_ATTEMPTS' })
    expect(await logIn(email, code(secret))).toBe('password+totp')
    clock.advance(stepMs)
    await accounts.disableTotp(developer, { code: code(secret) }, newClient().network)
  })

  test('codes that are refused as used because the clock was set back are reported, and recovery codes work', async () => {
    const { email, developer, secret, recoveryCodes } = await enroll()
    const acceptedAgainAt = (totpStep(clock.now()) + 1) * stepMs
    expect(await logIn(email, code(secret))).toBe('password+totp')
    expect(await logIn(email, code(secret))).toBeUndefined()
    expect(setBack).toEqual([])
    clock.advance(-3_600_000)
    expect(await logIn(email, code(secret))).toBeUndefined()
    expect(setBack).toEqual([{ developerId: developer.id, acceptedAgainAt }])
    expect(await logIn(email, recoveryCodes[0])).toBe('password+recovery_code')
    clock.advance(3_600_000)
  })

  test('is removed by the operator, with its recovery codes', async () => {
    const { email, developer, recoveryCodes } = await enroll()
    await totp.reset(developer.id)
    expect(await logIn(email)).toBe('password')
    expect(await auditActions(developer)).toContain('totp.reset')
    await expect(totp.reset(developer.id)).rejects.toMatchObject({ reason: 'TOTP_NOT_ENABLED' })
    const { secret } = await totp.propose(developer)
    await totp.confirm(developer, code(secret))
    expect(await logIn(email, recoveryCodes[0])).toBeUndefined()
  })

  test('the database has neither the secret nor the recovery codes', async () => {
    const { developer, secret, recoveryCodes } = await enroll()
    const { totpSecrets, recoveryCodes: codes } = database().tables
    const rows = [
      ...(await database().read.select().from(totpSecrets)),
      ...(await database().read.select().from(codes)),
    ]
    const text = JSON.stringify(rows).toLowerCase()
    const plain = Buffer.from(decodeBase32(secret))
    const encodings = [secret, plain.toString('hex'), plain.toString('base64'), plain.toString('base64url')]
    for (const hidden of [
      ...encodings,
      ...recoveryCodes,
      ...recoveryCodes.map((one) => one.replaceAll('-', '')),
    ])
      expect(text).not.toContain(hidden.toLowerCase())
    expect(rows.find((row) => row.developerId === developer.id)).toMatchObject({
      secret: expect.stringMatching(/^1\./),
    })
  })

  test('a sealed secret that is moved to another account does not decrypt', async () => {
    const [one, other] = [await enroll(), await enroll()]
    const stolen = (await store.read.totpSecrets.find(other.developer.id))?.secret ?? ''
    await store.write(async (tx) => {
      await tx.totpSecrets.delete(one.developer.id)
      await tx.totpSecrets.propose({ developerId: one.developer.id, secret: stolen, createdAt: 0 })
    })
    await expect(totp.confirm(one.developer, code(other.secret))).rejects.toThrow()
  })

  test('works after the clock was set back', async () => {
    const { email, secret } = await enroll()
    expect(await logIn(email, code(secret))).toBe('password+totp')
    clock.advance(-3_600_000)
    await store.write((tx) => tx.deadlines.shiftDeadlines(3_600_000, clock.now()))
    await repairAfterClockRollback({ store, clock })
    expect(await logIn(email, code(secret, 1))).toBe('password+totp')
  })
})
