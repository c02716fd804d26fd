import { expect, test } from 'bun:test'
import { hashContexts } from '../../../src/domain/model/context.ts'
import { emptyRecord, hashOwnedPhone, trustOfCall } from '../../../src/domain/model/phone-record.ts'
import { derivePseudonym } from '../../../src/domain/model/pseudonyms.ts'
import { findPhone, loadPhone } from '../../../src/domain/otp/phones.ts'
import { createPhoneBackfills } from '../../../src/domain/upkeep/phone-key-backfill.ts'
import { createStore } from '../../../src/store/store.ts'
import { describeEachDatabase, registerShortIds } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const now = 1_800_000_000_000
const another = (byte: number) => Buffer.alloc(32, byte)
/** The keys after all of them were replaced. */
const newKeys = {
  ...testKeys,
  phone: [...testKeys.phone, another(1)],
  context: [...testKeys.context, another(2)],
  pseudonym: [...testKeys.pseudonym, another(3)],
}
const sender = { clientIp: null, deviceId: 'device' }

describeEachDatabase('replaced keys', (database) => {
  let count = 0
  async function saveUnderOldKeys() {
    if (count === 0) await registerShortIds(database(), 'dev_w')
    const phone = `+1415555${7100 + count++}`
    const owned = { developerId: 'dev_w', environment: 'live', phone, country: 'US' } as const
    await createStore(database(), { keys: testKeys }).write(async (tx) => {
      const loaded = await loadPhone(tx, testKeys, owned)
      await tx.phones.save(loaded, {
        ...emptyRecord({ ...owned, country: 'US' }),
        phone: count % 2 === 0 ? derivePseudonym(testKeys, 'dev_w', phone) : phone,
        usages: { ...loaded.record.usages, stranger: { sends: [now], checks: null } },
        contexts: hashContexts(testKeys, 'dev_w', sender).map((hash) => ({ hash, verifiedAt: now })),
        lastSentAt: now,
      })
    })
    return owned
  }
  const contexts = hashContexts(newKeys, 'dev_w', sender)

  test('restart no budget: the next call finds the record and moves it', async () => {
    const store = createStore(database(), { keys: testKeys })
    const owned = await saveUnderOldKeys()
    expect((await findPhone(store.read, newKeys, owned))?.record.lastSentAt).toBe(now)
    const loaded = await store.write((tx) => loadPhone(tx, newKeys, owned))
    expect(loaded.record.usages.stranger.sends).toEqual([now])
    expect(trustOfCall(loaded.record, { clientIp: null, contexts }, now)).toBe('device')
    expect(await store.read.phones.find(hashOwnedPhone(testKeys, owned))).toBeUndefined()
    expect((await store.read.phones.find(hashOwnedPhone(newKeys, owned)))?.lastSentAt).toBe(now)
  })

  test('are applied to every record by the backfill, which may stop and be repeated at any place', async () => {
    const store = createStore(database(), { keys: testKeys })
    const subscribers = []
    for (let n = 0; n < 25; n++) subscribers.push(await saveUnderOldKeys())
    for (const backfill of createPhoneBackfills(newKeys)) {
      for (let run = 0; run < 2; run++) {
        for (let position: string | undefined = '', batch = 0; position !== undefined; batch++) {
          const from: string = position
          position = await store.write((tx) => backfill.step(tx, from, 4))
          if (run === 0 && batch === 2) break
        }
      }
    }
    for (const owned of subscribers) {
      const record = await store.read.phones.find(hashOwnedPhone(newKeys, owned))
      expect(record?.usages.stranger.sends).toEqual([now])
      expect([owned.phone, derivePseudonym(newKeys, 'dev_w', owned.phone)]).toContain(record?.phone ?? '')
      expect(record && trustOfCall(record, { clientIp: null, contexts }, now)).toBe('device')
      expect(await store.read.phones.find(hashOwnedPhone(testKeys, owned))).toBeUndefined()
    }
  })
})
