import { beforeAll, describe, expect, test } from 'bun:test'
import {
  builtInIssuer,
  createDeveloperService,
  insertDeveloper,
  type Login,
} from '../../../src/domain/accounts/developers.ts'
import { hostOrigin } from '../../../src/domain/model/audit.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import { FREE_PLAN } from '../../../src/domain/model/plans.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const clock = testClock()
const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
const newId = createIds(clock, random)
const issuer = 'https://idp.example'

/** Creates the service. Its `admit` resolves a login with a fixed origin. */
function createService(needs: Parameters<typeof createDeveloperService>[0]) {
  const service = createDeveloperService(needs)
  return {
    ...service,
    admit: async (login: Login) => ({
      ...(await service.resolveLogin(
        { ...login, issuedAtMs: clock.now(), expiresAtMs: Infinity },
        hostOrigin,
      )),
      origin: hostOrigin,
    }),
  }
}

describeEachDatabase('developers', (database) => {
  let store: Store
  let open: ReturnType<typeof createService>
  let closed: ReturnType<typeof createService>
  let personCount = 0
  const newLogin = (): Login & { email: string } => {
    personCount += 1
    const email = `Person-${personCount}@example.com`
    return {
      issuer,
      subject: `subject-${personCount}`,
      email,
      emailVerified: true,
      name: `Person ${personCount}`,
    }
  }
  /** Invites a developer, as the operator does. */
  const invite = (email: string, name: string | null = null, plan = 'free') =>
    store.write((tx) =>
      insertDeveloper(
        tx,
        {
          id: newId('dev'),
          issuer: null,
          subject: null,
          email: email.toLowerCase(),
          name,
          plan,
          now: clock.now(),
        },
        random,
      ),
    )

  beforeAll(() => {
    store = createStore(database(), { keys: testKeys })
    const needs = { store, clock, newId, random, plans: { free: { ...FREE_PLAN } } }
    open = createService({ ...needs, signUp: 'open' })
    closed = createService({ ...needs, signUp: 'closed' })
  })

  describe('with sign-up open', () => {
    test('a developer is created at the first login and found from then on', async () => {
      const login = newLogin()
      const developer = await open.admit(login)
      expect(developer).toMatchObject({ email: login.email.toLowerCase(), name: login.name, plan: 'free' })
      expect(developer.virtualPhone).toMatch(/^\+999\d{10}$/)
      expect(await open.admit({ ...login, name: 'Changed', email: 'other@example.com' })).toEqual(developer)
    })

    test('16 concurrent first logins create one developer', async () => {
      const login = newLogin()
      const seen = await Promise.all(Array.from({ length: 16 }, () => open.admit(login)))
      expect(new Set(seen.map(({ id }) => id)).size).toBe(1)
    })

    test('the same subject of another issuer is another developer', async () => {
      const login = newLogin()
      const one = await open.admit(login)
      const two = await open.admit({ ...login, issuer: 'https://other.example' })
      expect(two.id).not.toBe(one.id)
    })

    test('an unverified address is not stored, and a long name is truncated', async () => {
      const developer = await open.admit({
        ...newLogin(),
        emailVerified: false,
        name: `\u0007${'😀'.repeat(90)}`,
      })
      expect(developer.email).toBeNull()
      expect(developer.name).toBe('😀'.repeat(80))
    })

    test('an unknown subject of the built-in provider is rejected', async () => {
      await expect(open.admit({ issuer: builtInIssuer, subject: newId('dev') })).rejects.toMatchObject({
        code: 'FORBIDDEN',
        reason: 'ACCOUNT_NOT_ALLOWED',
      })
    })

    test('a virtual number is never assigned twice', async () => {
      const { virtualPhone } = await open.admit(newLogin())
      const takenBytes = new Uint8Array(8)
      new DataView(takenBytes.buffer).setBigUint64(0, BigInt(virtualPhone.slice(4)))
      let drawCount = 0
      const repeating = (bytes: Uint8Array<ArrayBuffer>) => {
        if (bytes.length === 8 && (drawCount += 1) <= 2) bytes.set(takenBytes)
        else random(bytes)
      }
      const needs = { store, clock, newId, plans: { free: { ...FREE_PLAN } }, signUp: 'open' as const }
      const developer = await createService({ ...needs, random: repeating }).admit(newLogin())
      expect(developer.virtualPhone).not.toBe(virtualPhone)
      expect(drawCount).toBe(3)
    })
  })

  describe('with sign-up closed', () => {
    test('an unknown subject is rejected', async () => {
      await expect(closed.admit(newLogin())).rejects.toMatchObject({
        code: 'FORBIDDEN',
        reason: 'ACCOUNT_NOT_ALLOWED',
      })
    })

    test('an invited account is bound by its verified address at the first login', async () => {
      const login = newLogin()
      const invited = await invite(login.email, 'As the operator says', 'pro')
      const developer = await closed.admit(login)
      expect(developer).toMatchObject({
        id: invited?.id ?? '',
        subject: login.subject,
        name: 'As the operator says',
        plan: 'pro',
      })
      expect((await closed.admit({ ...login, email: undefined })).id).toBe(developer.id)
    })

    test('an unverified address binds no account', async () => {
      const login = newLogin()
      await invite(login.email)
      for (const emailVerified of [false, undefined]) {
        await expect(closed.admit({ ...login, emailVerified })).rejects.toMatchObject({ code: 'FORBIDDEN' })
      }
    })

    test('exactly one of 8 concurrent subjects with the same verified address is bound', async () => {
      const login = newLogin()
      await invite(login.email)
      const tries = Array.from({ length: 8 }, (_, i) => closed.admit({ ...login, subject: `racer-${i}` }))
      const outcomes = await Promise.allSettled(tries)
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    })

    test('8 concurrent first logins of one subject all get the bound account', async () => {
      const login = newLogin()
      const invited = await invite(login.email)
      const seen = await Promise.all(Array.from({ length: 8 }, () => closed.admit(login)))
      expect(new Set(seen.map(({ id }) => id))).toEqual(new Set([invited?.id ?? '']))
    })

    test('an address can be invited once', async () => {
      const { email } = newLogin()
      expect(await invite(email)).toBeDefined()
      expect(await invite(email)).toBeUndefined()
    })
  })

  test('disabling takes effect with the next request', async () => {
    const login = newLogin()
    const { id } = await open.admit(login)
    await store.write((tx) => tx.developers.update(id, { status: 'disabled' }, clock.now()))
    await expect(open.admit(login)).rejects.toMatchObject({
      code: 'FORBIDDEN',
      reason: 'ACCOUNT_NOT_ALLOWED',
    })
  })

  test('the profile shows the limits of the plan, and changes only the given fields', async () => {
    const developer = await open.admit(newLogin())
    expect(open.toProfile(developer).limits).toEqual(FREE_PLAN)
    clock.advance(1000)
    const changed = await open.update(developer, { company: 'Analytical Engines' })
    expect(changed).toMatchObject({
      name: developer.name,
      company: 'Analytical Engines',
      updatedAt: clock.now(),
    })
    expect((await open.update(developer, { company: null })).company).toBeNull()
  })

  test('an update does not restore the name of an account that is deleted concurrently', async () => {
    const developer = await open.admit(newLogin())
    await store.write((tx) => tx.developers.anonymize(developer.id, clock.now()))
    await expect(open.update(developer, { name: 'Ada' })).rejects.toMatchObject({
      reason: 'ACCOUNT_NOT_ALLOWED',
    })
    expect(await store.read.developers.find(developer.id)).toMatchObject({ name: null })
    const trail = await store.read.audit.list(developer.id, { limit: 1 })
    expect(trail).toMatchObject([{ action: 'account.created' }])
  })
})
