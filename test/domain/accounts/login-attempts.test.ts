import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { createAccounts } from '../../../src/auth/identity.ts'
import { createLoginAttempts, staleLoginFailures } from '../../../src/domain/accounts/login-attempts.ts'
import type { AccountService } from '../../../src/domain/accounts/accounts.ts'
import { hostOrigin } from '../../../src/domain/model/audit.ts'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import { deriveKeys } from '../../helpers/keys.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testWorld } from '../../helpers/world.ts'
import type { World } from '../../../src/world/world.ts'

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
const clock = testClock()
const newId = createIds(clock, random)
const keys = deriveKeys(Buffer.alloc(32, 7))
const minutes = (count: number) => count * 60_000
const password = 'correct horse battery'
const wrong = 'wrong horse battery'
const home = '4:home'

describeEachDatabase('limits of failed logins', (database) => {
  let store: Store
  let accounts: AccountService
  let people = 0
  /** Resolves when passwords may be compared. */
  let comparing: Promise<unknown> = Promise.resolve()

  beforeAll(() => {
    store = createStore(database(), { keys })
    const world: World = {
      ...testWorld,
      async verifyPassword(password, hash) {
        await comparing
        return testWorld.verifyPassword(password, hash)
      },
    }
    accounts = createAccounts({ store, clock, newId, random, keys, world }).accounts
  })
  beforeEach(() => clock.advance(minutes(60)))

  async function newAccount() {
    const email = `victim-${(people += 1)}@example.com`
    await accounts.create({ email, password })
    return email
  }
  /** Returns the outcome of a login: `in`, `wrong`, or the reason of the refusal. */
  const logIn = async (email: string, secret: string, network: string): Promise<string> => {
    try {
      const client = { network, origin: hostOrigin }
      return (await accounts.authenticate(email, secret, client)) === undefined ? 'wrong' : 'in'
    } catch (error) {
      return error instanceof Error && 'reason' in error ? String(error.reason ?? 'UNAVAILABLE') : 'failed'
    }
  }
  /** Guesses five times from each network, one after the other. @returns how many passwords were compared */
  async function guessFrom(networks: number, email: string) {
    const outcomes: string[] = []
    for (let network = 0; network < networks; network += 1)
      for (let guess = 0; guess < 5; guess += 1)
        outcomes.push(await logIn(email, wrong, `4:guess-${network}`))
    return outcomes.filter((outcome) => outcome === 'wrong').length
  }

  /**
   * Makes 8 calls at once that compare a password. The queue has room for 4 and those that run. These wait until one call
   * was refused, so the queue is full even if the database is slower than a comparison.
   */
  async function overfill(call: () => Promise<unknown>) {
    const refused = Promise.withResolvers<void>()
    comparing = refused.promise
    const calls = Array.from({ length: 8 }, () =>
      call().catch((error: unknown) => {
        if (error instanceof ServiceError && error.code === 'UNAVAILABLE') refused.resolve()
      }),
    )
    await refused.promise
    await Promise.all(calls)
  }

  /** Counts failures of an account without the hashes that they cost. */
  const countFailures = async (email: string, count: number) => {
    const { developerId = '' } = (await store.read.accounts.findByEmail(email)) ?? {}
    for (let index = 0; index < count; index += 1)
      await store.write((tx) => tx.accounts.addFailedLogins(developerId, 1))
  }

  test('of 150 guesses from 30 networks, 100 are compared, and the owner still logs in at the usual place', async () => {
    const email = await newAccount()
    expect(await logIn(email, password, home)).toBe('in')
    expect(await guessFrom(30, email)).toBe(100)
    expect(await logIn(email, password, '4:elsewhere')).toBe('LOGIN_ATTEMPTS')
    clock.advance(minutes(24 * 60 * 30))
    expect(await logIn(email, password, '4:elsewhere')).toBe('LOGIN_ATTEMPTS')
    expect(await logIn(email, password, home)).toBe('in')
    expect(await logIn(email, password, '4:elsewhere')).toBe('in')
  })

  test('a login that ends after its account was deleted is no fault', async () => {
    const email = await newAccount()
    const { developerId = '' } = (await store.read.accounts.findByEmail(email)) ?? {}
    const attempts = createLoginAttempts({ store, clock, newId, keys })
    const client = { network: home, origin: hostOrigin }
    const attempt = await attempts.begin(email, client, 'login.failed', false)
    await store.write((tx) => tx.accounts.delete(developerId))
    await attempt.succeed()
  })

  test('of 7 guesses from one network, 5 are compared in 15 minutes', async () => {
    const email = await newAccount()
    const outcomes: string[] = []
    for (let guess = 0; guess < 7; guess += 1) outcomes.push(await logIn(email, wrong, '4:guesser'))
    expect(outcomes).toEqual([...Array<string>(5).fill('wrong'), 'LOGIN_ATTEMPTS', 'LOGIN_ATTEMPTS'])
    clock.advance(minutes(15))
    expect(await logIn(email, wrong, '4:guesser')).toBe('wrong')
  })

  test('an address without an account is refused after as many guesses', async () => {
    expect(await guessFrom(24, 'nobody@example.com')).toBe(100)
  })

  test('a new password from the operator admits all networks again', async () => {
    const email = await newAccount()
    await countFailures(email, 100)
    expect(await logIn(email, password, home)).toBe('LOGIN_ATTEMPTS')
    await accounts.resetPassword(email, 'another horse battery')
    for (let guess = 0; guess < 5; guess += 1) await logIn(email, wrong, home)
    expect(await logIn(email, 'another horse battery', home)).toBe('LOGIN_ATTEMPTS')
    await accounts.resetPassword(email, 'one more horse battery')
    expect(await logIn(email, 'one more horse battery', home)).toBe('in')
  })

  test('of 40 concurrent guesses from different networks, those left to 100 are compared', async () => {
    const email = await newAccount()
    await countFailures(email, 90)
    const guesses = Array.from({ length: 40 }, (_, index) => logIn(email, wrong, `4:racer-${index}`))
    const outcomes = await Promise.all(guesses)
    expect(outcomes.filter((outcome) => outcome === 'wrong')).toHaveLength(10)
  })

  test('a network that failed at 20 accounts tries only those that were logged in to from it', async () => {
    const [mine, other] = [await newAccount(), await newAccount()]
    const network = '4:spray'
    expect(await logIn(mine, password, network)).toBe('in')
    const outcomes: string[] = []
    for (let index = 0; index < 60; index += 1)
      outcomes.push(await logIn(`sprayed-${index}@example.com`, wrong, network))
    expect(outcomes.filter((outcome) => outcome === 'wrong')).toHaveLength(20)
    expect(await logIn(other, password, network)).toBe('LOGIN_ATTEMPTS')
    expect(await logIn(other, password, home)).toBe('in')
    expect(await logIn(mine, wrong, network)).toBe('wrong')
    expect(await logIn(mine, password, network)).toBe('in')
    clock.advance(minutes(15))
    expect(await logIn(other, password, network)).toBe('in')
  })

  test('of 6 concurrent logins at different accounts, the one left to 20 is compared', async () => {
    const network = '4:spray-race'
    for (let index = 0; index < 19; index += 1) await logIn(`sprayed-${index}@example.com`, wrong, network)
    const tries = Array.from({ length: 6 }, (_, index) => logIn(`racer-${index}@example.com`, wrong, network))
    const outcomes = await Promise.all(tries)
    expect(outcomes.filter((outcome) => outcome === 'wrong')).toHaveLength(1)
  })

  test('a login that the queue refuses is not counted', async () => {
    const email = await newAccount()
    const client = { network: '4:burst', origin: hostOrigin }
    for (let round = 0; round < 4; round += 1)
      await overfill(() => accounts.authenticate(email, password, client))
    expect(await logIn(email, password, '4:burst')).toBe('in')
    expect((await store.read.accounts.findByEmail(email))?.failedLogins).toBe(0)
  })

  test('a change of the password that the queue refuses is not counted', async () => {
    const email = await newAccount()
    const account = await store.read.accounts.findByEmail(email)
    const change = async () => {
      const developer = await store.read.developers.find(account?.developerId ?? '')
      if (!developer) throw new Error('no developer')
      await accounts.changePassword({ ...developer, origin: hostOrigin }, password, password, '4:change')
    }
    for (let round = 0; round < 3; round += 1) await overfill(change)
    await change()
    const rows = await database().read.select().from(database().tables.loginFailures)
    expect(rows.filter(({ at }) => at === clock.now())).toHaveLength(0)
  })

  test('what is stored of networks and addresses are keyed hashes', async () => {
    const email = await newAccount()
    await logIn(email, password, '4:c0000201')
    await logIn('nobody@example.com', wrong, '4:c0000201')
    const { loginFailures, loginCounters, loginNetworks } = database().tables
    const rows = [
      ...(await database().read.select().from(loginFailures)),
      ...(await database().read.select().from(loginCounters)),
      ...(await database().read.select().from(loginNetworks)),
    ]
    expect(rows.length).toBeGreaterThan(2)
    for (const plain of ['c0000201', 'nobody', '@']) expect(JSON.stringify(rows)).not.toContain(plain)
  })

  test('known networks stay known when the key of their hashes is replaced', async () => {
    const email = await newAccount()
    expect(await logIn(email, password, home)).toBe('in')
    await countFailures(email, 100)
    const [first = Buffer.alloc(32)] = keys.login
    const replaced = { ...keys, login: [first, Buffer.alloc(32, 8)] }
    const renewed = createAccounts({ store, clock, newId, random, keys: replaced, world: testWorld }).accounts
    const client = (network: string) => ({ network, origin: hostOrigin })
    await expect(renewed.authenticate(email, password, client('4:elsewhere'))).rejects.toMatchObject({
      reason: 'LOGIN_ATTEMPTS',
    })
    expect(await renewed.authenticate(email, password, client(home))).toBeDefined()
  })

  test('counters of made-up addresses are forgotten after a day, and bounded before', async () => {
    const countRows = async () =>
      (await database().read.select().from(database().tables.loginCounters)).length
    const purge = async (countersMax: number) => {
      const until = { ...staleLoginFailures(clock.now()), countersMax }
      while (await store.write((tx) => tx.loginAttempts.deleteOldest(until, 100)));
    }
    for (let index = 0; index < 30; index += 1) {
      clock.advance(1)
      await logIn(`made-up-${index}@example.com`, wrong, `4:made-up-${index}`)
    }
    await purge(20)
    expect(await countRows()).toBe(20)
    clock.advance(minutes(24 * 60))
    await purge(20)
    expect(await countRows()).toBe(0)
  })

  test('an account remembers its latest 50 networks', async () => {
    const email = await newAccount()
    const { developerId = '' } = (await store.read.accounts.findByEmail(email)) ?? {}
    for (let index = 0; index < 55; index += 1)
      await store.write((tx) => tx.loginAttempts.addNetwork(developerId, `place-${index}`, index, 50))
    expect(await logIn(email, password, home)).toBe('in')
    const rows = await database().read.select().from(database().tables.loginNetworks)
    expect(rows.filter((row) => row.developerId === developerId)).toHaveLength(50)
  })

  test('a hash of less work is replaced at the next login', async () => {
    const { accounts: real } = createAccounts({ store, clock, newId, random, keys })
    const logIn = async (secret: string) =>
      (await real.authenticate(email, secret, { network: home, origin: hostOrigin })) ? 'in' : 'wrong'
    const email = await newAccount()
    const { developerId = '', passwordHash = '' } = (await store.read.accounts.findByEmail(email)) ?? {}
    const weak = await Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 1024, timeCost: 1 })
    await store.write((tx) => tx.accounts.rehash(developerId, passwordHash, weak))
    expect(await logIn(wrong)).toBe('wrong')
    expect((await store.read.accounts.findByEmail(email))?.passwordHash).toBe(weak)
    expect(await logIn(password)).toBe('in')
    expect((await store.read.accounts.findByEmail(email))?.passwordHash).toStartWith(
      '$argon2id$v=19$m=19456,t=2,',
    )
    expect(await logIn(password)).toBe('in')
  })
})
