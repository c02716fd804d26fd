import { beforeEach, expect, test } from 'bun:test'
import { openTotpSecret, sealTotpSecret } from '../../../src/domain/accounts/totp.ts'
import { createGuard } from '../../../src/domain/guard/guard.ts'
import { countryKey, prefixKey } from '../../../src/domain/guard/row-keys.ts'
import { hashOwnedPhone } from '../../../src/domain/model/phone-record.ts'
import { dayMs } from '../../../src/shared/durations.ts'
import type { Sender } from '../../../src/domain/model/guard.ts'
import { hashContexts } from '../../../src/domain/model/context.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import { createKeyring, newDataKey, purposes, type Keyring } from '../../../src/domain/model/keys.ts'
import { deriveCode, hashCode } from '../../../src/domain/model/code.ts'
import { derivePseudonym } from '../../../src/domain/model/pseudonyms.ts'
import type { Random } from '../../../src/domain/model/random.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { evidenceBackfill } from '../../../src/domain/upkeep/guard-backfills.ts'
import { createBackfills } from '../../../src/domain/upkeep/backfills.ts'
import { createAllBackfills } from '../../../src/domain/upkeep/replaced-keys.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase, registerShortIds } from '../../helpers/databases.ts'
import { createGuardCalls, guardOff, stranger, usageOf } from '../../helpers/guard.ts'
import { createPendingRequest } from '../../helpers/otp-request.ts'

const random: Random = (bytes) => crypto.getRandomValues(bytes)
const versionOf = (version: number) => purposes.map((purpose) => newDataKey(purpose, version, random))

describeEachDatabase('after the keys were replaced', (database) => {
  const clock = testClock()
  const newId = createIds(clock, random)
  const first = versionOf(1)
  let store: Store
  let ring: Keyring & { refresh(): void }

  beforeEach(() => {
    ring = { ...createKeyring(first), refresh: () => {} }
    store = createStore(database(), { keys: ring.keys })
  })

  /** Runs the backfills, with an interruption after each batch if `isInterrupted`. */
  async function run(isInterrupted: boolean): Promise<string[]> {
    const ended: string[] = []
    const backfills = createAllBackfills({ keys: ring.keys, clock, newId, random })
    const { run: runBackfills } = createBackfills({
      store,
      keyring: ring,
      backfills,
      onEnded: ({ name }) => void ended.push(name),
    })
    for (let i = 0; i < (isInterrupted ? 90 : 1); i++)
      await runBackfills({ batchSize: 2, yieldToRequests: async () => !isInterrupted })
    return ended
  }

  const insert = async (phone: string) => {
    const id = newId('otp')
    const codeSalt = 'AAAAAAAAAAAAAAAAAAAAAA'
    const code = deriveCode(ring.keys, { id, codeSalt, phone, environment: 'live' })
    const request = createPendingRequest(clock.now(), {
      id,
      phone,
      codeSalt,
      codeHash: hashCode(ring.keys, id, code),
    })
    await registerShortIds(database(), request.developerId, request.projectId, request.appId).catch(() => {})
    await store.write(async (tx) => tx.otpRequests.insert([request]))
    return request
  }

  /** Gives a developer with a password a second factor. */
  async function insertTotpSecret(secret: string) {
    const { tables } = database()
    await database().write(async (tx) => {
      const at = { createdAt: 0, updatedAt: 0 }
      const developer = {
        id: 'dev_totp',
        plan: 'free',
        virtualPhone: '+15550000000',
        status: 'active' as const,
        tokensValidFrom: 0,
      }
      await tx
        .insert(tables.developers)
        .values({ ...developer, ...at })
        .onConflictDoNothing()
      const account = { developerId: 'dev_totp', email: 'ada@example.com', passwordHash: 'x' }
      await tx
        .insert(tables.accounts)
        .values({ ...account, ...at })
        .onConflictDoNothing()
      await tx
        .insert(tables.totpSecrets)
        .values({ developerId: 'dev_totp', secret, createdAt: 0 })
        .onConflictDoUpdate({ target: tables.totpSecrets.developerId, set: { secret } })
    })
  }

  test.each([false, true])(
    "the guard's counts of prefixes and devices go on (interrupted: %p)",
    async (isInterrupted) => {
      const guard = createGuard({ settings: guardOff, keys: ring.keys, onFault: expect.unreachable })
      const developerId = newId('dev')
      const message = (n: number) => ({
        ...createPendingRequest(clock.now(), {
          developerId,
          phone: `+31612340${100 + n}`,
          clientIp: '203.0.113.9',
        }),
        provider: null,
        numberType: null,
      })
      const calls = createGuardCalls(store, guard)
      const isBlocked = async (sender: Sender, one = message(0)) =>
        (await calls.evaluate({ ...one, clientIp: null }, sender, clock.now())).blocked
      const withDevice = () => ({
        ...stranger,
        contexts: hashContexts(ring.keys, developerId, { clientIp: null, deviceId: 'phone' }),
      })
      const elsewhere = { ...message(0), phone: '+31622220000' }
      for (let n = 0; n < 5; n++) expect(await isBlocked(withDevice(), elsewhere)).toBe(false)
      await Promise.all(Array.from({ length: 60 }, (_, n) => isBlocked(stranger, message(n))))
      expect(await isBlocked(stranger)).toBe(true)

      ring.replace([...first, ...versionOf(2)])
      await run(isInterrupted)
      expect(await isBlocked(stranger)).toBe(true)
      expect(await isBlocked(withDevice(), elsewhere)).toBe(true)
      expect(await isBlocked(stranger, elsewhere)).toBe(false)
      await store.write(async (tx) => {
        for (const state of await tx.backfills.list()) await tx.backfills.put({ ...state, version: 1 })
      })
    },
  )

  test.each([
    ['', false, 1],
    ['interrupted', true, 1],
    ['at three nodes at once', false, 3],
  ] as const)(
    'verified phones of 14 days become evidence, once each (%s)',
    async (_, isInterrupted, nodes) => {
      const now = clock.now()
      const developerId = newId('dev')
      const developer = { developerId, environment: 'live' as const }
      const appId = newId('app')
      const device = `device${Number(isInterrupted)}${nodes}____`
      await registerShortIds(database(), developerId, appId)
      const save = async (phone: string, daysAgo: number, environment: 'live' | 'test' = 'live') => {
        const owned = { ...developer, environment, phone }
        const at = now - daysAgo * dayMs
        const times = { verificationCount: 9, firstVerifiedAt: at, lastVerifiedAt: at }
        await store.write(async (tx) => {
          const handle = await tx.phones.load(hashOwnedPhone(ring.keys, owned), { ...owned, country: 'NL' })
          const identity = { id: newId('idn'), ...times, applications: [appId] }
          const contexts = [{ hash: device, verifiedAt: at }]
          await tx.phones.save(handle, { ...handle.record, contexts, identity })
        })
      }
      for (let n = 0; n < 5; n++) await save(`+3161234000${n}`, 2 * n)
      await save('+31612350000', 20)
      await save('+31612350001', 0, 'test')
      await store.write((tx) => tx.backfills.put({ backfill: evidenceBackfill, version: 1, position: '' }))
      await Promise.all(Array.from({ length: nodes }, () => run(isInterrupted)))
      await run(false)
      const subjects = [countryKey(developerId, 'NL'), prefixKey(ring.keys, developerId, '+31612340000')]
      for (const subject of [...subjects, device]) {
        const row = await store.write(async ({ guard }) => (await guard.rows([subject])).get(subject))
        expect([subject, usageOf(row, now).evidence]).toEqual([subject, 5])
      }
    },
  )

  test.each([false, true])(
    'codes of before are canceled and pseudonyms are hashed again (interrupted: %p)',
    async (isInterrupted) => {
      const old = [await insert('+31612345678'), await insert('+31612345679'), await insert('+31612345680')]
      const [hidden] = old
      if (!hidden) throw new Error('no request')
      const pseudonym = derivePseudonym(ring.keys, hidden.developerId, hidden.phone)
      await store.write((tx) => tx.retention.replaceInRequest(hidden.id, pseudonym))

      const sealing = { keys: ring.keys, random }
      const totp = new Uint8Array(20).fill(7)
      await insertTotpSecret(sealTotpSecret(sealing, 'dev_totp', totp))

      ring.replace([...first, ...versionOf(2)])
      const later = await insert('+31612345681')
      await run(isInterrupted)

      const status = async (id: string) => (await store.read.otpRequests.find(id))?.status
      for (const { id } of old.slice(1)) expect(await status(id)).toBe('canceled')
      expect(await status(later.id)).toBe('pending')
      const rehashed = await store.read.otpRequests.find(hidden.id)
      expect(rehashed?.phone).toBe(derivePseudonym(ring.keys, hidden.developerId, '+31612345678'))
      const sealed = await store.read.totpSecrets.find('dev_totp')
      expect(sealed?.secret).toStartWith('2.')
      expect(openTotpSecret(ring.keys, { developerId: 'dev_totp', secret: sealed?.secret ?? '' })).toEqual(
        Buffer.from(totp),
      )
      const states = await store.read.backfills.list()
      expect(states.every(({ version, position }) => version === 2 && position === null)).toBe(true)
      await store.write(async (tx) => {
        for (const state of states) await tx.backfills.put({ ...state, version: 1 })
        tx.otpRequests.update([{ request: { ...later, status: 'canceled' } }])
      })
    },
  )
})
