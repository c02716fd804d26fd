import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createAccounts } from '../../../src/auth/identity.ts'
import { createPasswords } from '../../../src/auth/passwords.ts'
import { createAccountService, type AccountService } from '../../../src/domain/accounts/accounts.ts'
import type { Developer } from '../../../src/domain/model/developer.ts'
import { hostOrigin } from '../../../src/domain/model/audit.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import { createLoginAttempts } from '../../../src/domain/accounts/login-attempts.ts'
import { createRefreshTokens, type RefreshTokens } from '../../../src/domain/accounts/refresh-tokens.ts'
import { createSetupTokens, type SetupTokens } from '../../../src/domain/accounts/setup-tokens.ts'
import { createTotpService } from '../../../src/domain/accounts/totp.ts'
import { deriveKeys, testKeys } from '../../helpers/keys.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { dayMs } from '../../../src/shared/durations.ts'
import type { World } from '../../../src/world/world.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testWorld } from '../../helpers/world.ts'

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
const clock = testClock()
const newId = createIds(clock, random)
const client = (network: string) => ({ network, origin: hostOrigin })
const keys = deriveKeys(Buffer.alloc(32, 7))
const minutes = (count: number) => count * 60_000
const password = 'correct horse battery'

describeEachDatabase('accounts', (database) => {
  let store: Store
  let setupTokens: SetupTokens
  let refreshTokens: RefreshTokens
  let accounts: AccountService
  let person = 0
  /** Returns an unused address. */
  const newEmail = () => `person-${(person += 1)}@example.com`

  beforeAll(() => {
    store = createStore(database(), { keys: testKeys })
    setupTokens = createSetupTokens({ store, clock, newId, random })
    refreshTokens = createRefreshTokens({
      store,
      clock,
      newId,
      random,
      keys: { refreshToken: Buffer.alloc(32, 1) },
    })
    accounts = createAccountService({
      store,
      clock,
      newId,
      random,
      passwords: createPasswords(clock, testWorld),
      loginAttempts: createLoginAttempts({ store, clock, newId, keys }),
      setupTokens,
      totp: createTotpService({ store, clock, wall: clock, newId, random, keys }),
    })
  })
  beforeEach(() => clock.advance(minutes(60)))

  // First, while the database is empty.
  describe('the first setup token', () => {
    test('is replaced at the next start, works once, and is invalid after the first account', async () => {
      const before = await setupTokens.issueForFirstStart()
      const first = await setupTokens.issueForFirstStart()
      if (!before || !first) throw new Error('there is an account already')
      expect(first.expiresAt).toBe(clock.now() + minutes(30))
      const input = { email: newEmail(), password }
      expect(await accounts.createWithSetupToken(before.token, input, client('192.0.2.1'))).toBeUndefined()

      await accounts.create({ email: newEmail(), password })
      expect(await accounts.createWithSetupToken(first.token, input, client('192.0.2.1'))).toBeUndefined()
      expect(await setupTokens.issueForFirstStart()).toBeUndefined()
    })
  })

  describe('create', () => {
    test('creates a developer with a virtual number and a lower-case address', async () => {
      const developer = await accounts.create({ email: ' Ada@Example.COM ', name: 'Ada\n', password })
      expect(developer).toMatchObject({
        email: 'ada@example.com',
        name: 'Ada',
        plan: 'free',
        status: 'active',
      })
      expect(developer.virtualPhone).toMatch(/^\+999\d{10}$/)
      expect(developer.subject).toBe(developer.id)
      expect(await accounts.authenticate('ADA@example.com', password, client('192.0.2.1'))).toEqual({
        developer,
        method: 'password',
      })
    })

    test('rejects a taken address, and leaves nothing behind', async () => {
      const email = newEmail()
      const results = await Promise.allSettled([1, 2, 3].map(() => accounts.create({ email, password })))
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
        reason: { code: 'CONFLICT', reason: 'EMAIL_TAKEN' },
      })
      expect(await store.read.developers.findByEmail(email)).toHaveLength(1)
    })

    test.each([
      ['a short password', { email: 'a@b.example', password: 'eleven char' }],
      ['an address without @', { email: 'a.example', password }],
      ['an address with a space', { email: 'a b@c.example', password }],
      ['an empty address', { email: ' ', password }],
    ])('refuses %s', async (_name, input) => {
      await expect(accounts.create(input)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    })
  })

  test('ensure creates the account once and leaves an existing one unchanged', async () => {
    const email = newEmail()
    await Promise.all([accounts.ensure({ email, password }), accounts.ensure({ email, password })])
    await accounts.ensure({ email, password: 'quite another password' })
    expect(await accounts.authenticate(email, password, client('192.0.2.1'))).toBeDefined()
  })

  describe('a setup token', () => {
    test('creates exactly one account for concurrent callers', async () => {
      const { token } = await setupTokens.issue()
      const tries = Array.from({ length: 8 }, (_, index) =>
        accounts.createWithSetupToken(token, { email: newEmail(), password }, client(`192.0.2.${index}`)),
      )
      expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1)
    })

    test('stays valid after a rejected account', async () => {
      const email = newEmail()
      await accounts.create({ email, password })
      const { token } = await setupTokens.issue()
      await expect(
        accounts.createWithSetupToken(token, { email, password }, client('192.0.2.1')),
      ).rejects.toMatchObject({
        code: 'CONFLICT',
      })
      await expect(
        accounts.createWithSetupToken(token, { email: 'x', password }, client('192.0.2.1')),
      ).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
      expect(
        await accounts.createWithSetupToken(token, { email: newEmail(), password }, client('192.0.2.1')),
      ).toBeDefined()
    })

    test('expires after 30 minutes, and an unknown one is rejected', async () => {
      const { token } = await setupTokens.issue()
      clock.advance(minutes(30))
      expect(
        await accounts.createWithSetupToken(token, { email: newEmail(), password }, client('192.0.2.1')),
      ).toBeUndefined()
      expect(
        await accounts.createWithSetupToken(
          'st_unknown',
          { email: newEmail(), password },
          client('192.0.2.1'),
        ),
      ).toBeUndefined()
    })

    test('is not what the database holds', async () => {
      const { token } = await setupTokens.issue()
      const rows = await database().read.select().from(database().tables.setupTokens)
      expect(rows.length).toBeGreaterThan(0)
      expect(JSON.stringify(rows)).not.toContain(token)
    })
  })

  describe('authenticate', () => {
    test('accepts only the right password of a known address', async () => {
      const email = newEmail()
      await accounts.create({ email, password })
      expect(await accounts.authenticate(email, 'wrong horse battery', client('192.0.2.1'))).toBeUndefined()
      expect(await accounts.authenticate('nobody@example.com', password, client('192.0.2.1'))).toBeUndefined()
      expect(await accounts.authenticate(email, password, client('192.0.2.1'))).toBeDefined()
    })

    test('rejects logins after 5 failures in 15 minutes, for that account and network only', async () => {
      const [email, other] = [newEmail(), newEmail()]
      await accounts.create({ email, password })
      await accounts.create({ email: other, password })
      for (let i = 0; i < 5; i += 1)
        await accounts.authenticate(email, 'wrong horse battery', client('192.0.2.1'))
      const login = () => accounts.authenticate(email, password, client('192.0.2.1'))
      clock.advance(minutes(5))
      await expect(login()).rejects.toMatchObject({
        code: 'RATE_LIMITED',
        reason: 'LOGIN_ATTEMPTS',
        retryAfterSeconds: 600,
      })
      expect(await accounts.authenticate(email, password, client('192.0.2.2'))).toBeDefined()
      expect(await accounts.authenticate(other, password, client('192.0.2.1'))).toBeDefined()
      clock.advance(minutes(10) - 1)
      await expect(login()).rejects.toMatchObject({ retryAfterSeconds: 1 })
      clock.advance(1)
      expect(await login()).toBeDefined()
    })

    test('does not count logins that succeed', async () => {
      const email = newEmail()
      await accounts.create({ email, password })
      for (let i = 0; i < 7; i += 1) {
        expect(await accounts.authenticate(email, password, client('192.0.2.1'))).toBeDefined()
      }
    })

    test('compares at most 5 of 20 concurrent wrong passwords', async () => {
      const email = newEmail()
      await accounts.create({ email, password })
      const tries = Array.from({ length: 20 }, () =>
        accounts.authenticate(email, 'wrong horse battery', client('192.0.2.9')),
      )
      const outcomes = await Promise.allSettled(tries)
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
    })

    test('rejects a disabled account like a wrong password', async () => {
      const email = newEmail()
      const { id } = await accounts.create({ email, password })
      await store.write((tx) => tx.developers.update(id, { status: 'disabled' }, clock.now()))
      expect(await accounts.authenticate(email, password, client('192.0.2.1'))).toBeUndefined()
    })
  })

  const startSession = async (developer: Developer) =>
    (await refreshTokens.issue({ ...developer, origin: hostOrigin }, 'password'))?.refreshToken ?? ''

  describe('a new password', () => {
    test('set by the operator ends all sessions', async () => {
      const email = newEmail()
      const developer = await accounts.create({ email, password })
      const session = await startSession(developer)
      await accounts.resetPassword(email.toUpperCase(), 'another password!')
      expect(await accounts.authenticate(email, password, client('192.0.2.1'))).toBeUndefined()
      expect(await accounts.authenticate(email, 'another password!', client('192.0.2.1'))).toBeDefined()
      expect(await refreshTokens.rotate(session, hostOrigin)).toBeUndefined()
    })

    test('leaves no session to a login that began with the old one', async () => {
      const email = newEmail()
      await accounts.create({ email, password })
      const login = await accounts.authenticate(email, password, client('192.0.2.1'))
      await accounts.resetPassword(email, 'another password!')
      if (typeof login !== 'object') throw new Error('the login failed')
      expect(
        await refreshTokens.issue({ ...login.developer, origin: hostOrigin }, 'password'),
      ).toBeUndefined()
    })

    test('is rejected if it is too short or the account is unknown', async () => {
      await expect(accounts.resetPassword('nobody@example.com', password)).rejects.toMatchObject({
        code: 'NOT_FOUND',
      })
      await expect(accounts.resetPassword('nobody@example.com', 'short')).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
    })

    test('chosen by the developer requires the current one, and ends all sessions', async () => {
      const email = newEmail()
      const developer = await accounts.create({ email, password })
      const session = await startSession(developer)
      const change = (current: string) =>
        accounts.changePassword(
          { ...developer, origin: hostOrigin },
          current,
          'another password!',
          '192.0.2.1',
        )
      await expect(change('wrong horse battery')).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: [{ path: 'currentPassword' }],
      })
      await change(password)
      expect(await accounts.authenticate(email, 'another password!', client('192.0.2.1'))).toBeDefined()
      expect(await refreshTokens.rotate(session, hostOrigin)).toBeUndefined()
    })

    test('does not undo a reset that comes while the current one is compared', async () => {
      const email = newEmail()
      const developer = await accounts.create({ email, password })
      const verifyPassword: World['verifyPassword'] = async (...compared) => {
        const matches = await testWorld.verifyPassword(...compared)
        await accounts.resetPassword(email, 'of the operator 7')
        return matches
      }
      const world = { ...testWorld, verifyPassword }
      const thief = createAccounts({ store, clock, newId, random, keys, world })
      const change = thief.accounts.changePassword(
        { ...developer, origin: hostOrigin },
        password,
        'of the thief 7',
        '192.0.2.1',
      )
      await expect(change).rejects.toMatchObject({ reason: 'TOKEN_REVOKED' })
      expect(await accounts.authenticate(email, 'of the operator 7', client('192.0.2.1'))).toBeDefined()
    })
  })

  describe('refresh tokens', () => {
    const begin = async () => {
      const developer = await accounts.create({ email: newEmail(), password })
      return { developer, token: await startSession(developer) }
    }
    const successor = async (token: string) => (await refreshTokens.rotate(token, hostOrigin))?.refreshToken

    test('each have one successor, and return it again for 60 seconds', async () => {
      const { developer, token } = await begin()
      const next = await refreshTokens.rotate(token, hostOrigin)
      expect(next).toMatchObject({ developer: { id: developer.id } })
      expect(next?.refreshToken).not.toBe(token)
      clock.advance(60_000)
      expect(await successor(token)).toBe(next?.refreshToken ?? '')
    })

    test('16 concurrent calls get the same successor, which works', async () => {
      const { token } = await begin()
      const successors = await Promise.all(Array.from({ length: 16 }, () => successor(token)))
      expect(new Set(successors).size).toBe(1)
      expect(await successor(successors[0] ?? '')).toBeString()
    })

    test('reuse after 60 seconds revokes the family, and no other', async () => {
      const { developer, token } = await begin()
      const otherSession = await startSession(developer)
      const second = (await successor(token)) ?? ''
      const third = (await successor(second)) ?? ''
      clock.advance(60_001)
      expect(await successor(token)).toBeUndefined()
      for (const dead of [token, second, third]) expect(await successor(dead)).toBeUndefined()
      expect(await successor(otherSession)).toBeString()
    })

    test('concurrent reuse and legitimate exchange leave no usable token', async () => {
      const { token } = await begin()
      const second = (await successor(token)) ?? ''
      clock.advance(60_001)
      const [third] = await Promise.all([successor(second), successor(token)])
      expect(await successor(second)).toBeUndefined()
      if (third) expect(await successor(third)).toBeUndefined()
    })

    test('expire after 30 days without use', async () => {
      const { token } = await begin()
      clock.advance(minutes(60) * 24 * 30 - 1)
      const next = await successor(token)
      expect(next).toBeString()
      clock.advance(minutes(60) * 24 * 30)
      expect(await successor(next ?? '')).toBeUndefined()
    })

    test('end 90 days after the login, however often they are used', async () => {
      const { token } = await begin()
      let current: string | undefined = token
      for (let day = 0; day < 90; day += 10) {
        current = await successor(current ?? '')
        expect(current).toBeString()
        clock.advance(10 * dayMs - 1)
      }
      expect(await successor(current ?? '')).toBeString()
      clock.advance(9)
      expect(await successor(current ?? '')).toBeUndefined()
    })

    test('are not issued to a disabled developer', async () => {
      const { developer, token } = await begin()
      await store.write((tx) => tx.developers.update(developer.id, { status: 'disabled' }, clock.now()))
      expect(await successor(token)).toBeUndefined()
    })

    test('revoking any of them revokes the family', async () => {
      const { token } = await begin()
      const next = (await successor(token)) ?? ''
      await refreshTokens.revoke(token, hostOrigin)
      expect(await successor(next)).toBeUndefined()
      await refreshTokens.revoke('unknown', hostOrigin)
    })

    test('are not what the database holds', async () => {
      const { token } = await begin()
      const next = (await successor(token)) ?? ''
      const rows = JSON.stringify(await database().read.select().from(database().tables.refreshTokens))
      for (const secret of [token, next]) expect(rows).not.toContain(secret)
    })
  })
})
