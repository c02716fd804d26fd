import { expect, test } from 'bun:test'
import {
  emptyRecord,
  hashOwnedPhone,
  noUsages,
  type PhoneRecord,
} from '../../src/domain/model/phone-record.ts'
import { hashPrefix } from '../../src/store/sqlite/phone-index.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, registerShortIds } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'

const owned = { developerId: 'dev_p', environment: 'live', phone: '+14155552671' } as const
const empty = emptyRecord({ ...owned, country: 'US' })

/** Hashes that begin with the same 53 bits, from the first letters on different after them. */
const collidingHashes = (start: string) =>
  ['AAAA', 'BBBB', 'CCCC'].map((end) => `${start.padEnd(12, 'x')}${end.repeat(3)}`)

describeEachDatabase('the records of phones', (database) => {
  const store = () => createStore(database(), { keys: testKeys })
  let isRegistered = false
  const register = async () => {
    if (!isRegistered) await registerShortIds(database(), 'dev_p', 'app_1', 'app_2')
    isRegistered = true
  }
  const save = (hash: string, record: PhoneRecord) =>
    store().write(async (tx) => tx.phones.save(await tx.phones.load(hash, record), record))

  test('are read back as they were saved', async () => {
    await register()
    const full: PhoneRecord = {
      ...empty,
      usages: {
        device: { sends: [1_800_000_000_003], checks: null },
        network: { sends: [1_800_000_000_001, 1_800_000_000_002], checks: null },
        stranger: {
          sends: [],
          checks: { refilledAt: 1_800_000_000_003, consecutiveFailures: 7, lockedUntil: 1_800_000_000_004 },
        },
      },
      contexts: [{ hash: 'Ab_-12345678', verifiedAt: 1_800_000_000_005 }],
      identity: {
        id: 'idn_1',
        verificationCount: 3,
        firstVerifiedAt: 1,
        lastVerifiedAt: 2,
        applications: ['app_1', 'app_2'],
      },
      newestRequest: 'otp_1',
      lastSentAt: 1_800_000_000_002,
    }
    for (const [name, record] of [
      ['full', full],
      ['empty', { ...empty, lastSentAt: 1 }],
    ] as const) {
      const hash = name.padEnd(24, 'h')
      await save(hash, record)
      expect(await store().read.phones.find(hash)).toEqual(record)
    }
    expect(await store().read.phones.find('none'.padEnd(24, 'h'))).toBeUndefined()
  })

  test('are found by the first 53 bits of their hash', () => {
    const hash = hashOwnedPhone(testKeys, owned)
    expect(hash).toHaveLength(24)
    expect(hashPrefix(hash)).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER)
    const bits = Buffer.from(hash, 'base64url').readBigUInt64BE(0) >> 11n
    expect(BigInt(hashPrefix(hash))).toBe(bits)
  })

  test('whose hashes begin alike stay apart, also when the first of them is deleted', async () => {
    await register()
    const hashes = collidingHashes('collide')
    expect(new Set(hashes.map(hashPrefix)).size).toBe(1)
    for (const [index, hash] of hashes.entries()) await save(hash, { ...empty, lastSentAt: index + 1 })
    const lastSentAt = async () => {
      const found = []
      for (const hash of hashes) found.push((await store().read.phones.find(hash))?.lastSentAt)
      return found
    }
    expect(await lastSentAt()).toEqual([1, 2, 3])
    const remove = (hash = '') =>
      store().write(async (tx) => tx.phones.delete(await tx.phones.load(hash, empty)))
    await remove(hashes[0])
    expect(await lastSentAt()).toEqual([undefined, 2, 3])
    await save(hashes[0] ?? '', { ...empty, lastSentAt: 4 })
    expect(await lastSentAt()).toEqual([4, 2, 3])
    await remove(hashes[2])
    await remove(hashes[0])
    expect(await lastSentAt()).toEqual([undefined, 2, undefined])
  })

  test('are not made by a call that changes nothing', async () => {
    await register()
    const hash = 'refused'.padEnd(24, 'r')
    const result = await store().decide({
      preload: { first: () => ({ phone: hash }) },
      decide: (rows) => ({ result: rows.phone(hash, empty).isNew, changes: [] }),
    })
    expect(result).toBe(true)
    const all = await store().read.phones.scan(-1, 1_000)
    expect(all.filter((one) => one.hash === hash)).toEqual([])
  })

  test('are locked from the first call on, so that two that create one count both', async () => {
    await register()
    for (let round = 0; round < 20; round++) {
      const hash = `race${round}`.padEnd(24, 'r')
      await Promise.all(
        Array.from({ length: 5 }, () =>
          store().write(async (tx) => {
            const loaded = await tx.phones.load(hash, empty)
            const { network } = loaded.record.usages
            const sends = [...network.sends, 1]
            const usages = { ...noUsages, network: { ...network, sends } }
            await tx.phones.save(loaded, { ...loaded.record, usages, lastSentAt: 1 })
          }),
        ),
      )
      expect((await store().read.phones.find(hash))?.usages.network.sends).toHaveLength(5)
    }
  })
})
