import type { Keys } from '../model/keys.ts'
import { upgradeOwnedPhoneHash } from '../model/phone-record.ts'
import { isPseudonym, upgradePseudonym } from '../model/pseudonyms.ts'
import { upgradeContexts } from '../otp/phones.ts'
import type { LoadedPhone } from '../store/phones.ts'
import type { Stores } from '../store/store.ts'
import type { Backfill } from './backfills.ts'

/** Creates the backfills that bring the records of phones to the newest keys. They work without the phone numbers. */
export const createPhoneBackfills = (keys: Pick<Keys, 'context' | 'phone' | 'pseudonym'>): Backfill[] => [
  {
    name: 'index.phones',
    purpose: 'phone-index',
    step: backfillPhones(
      () => keys.phone.length > 1,
      async (tx, current) => {
        const newest = upgradeOwnedPhoneHash(keys, current.hash)
        if (newest === current.hash) return
        const { record } = current
        await tx.phones.delete(current)
        await tx.phones.save(await tx.phones.load(newest, record), upgradeContexts(keys, record))
      },
    ),
  },
  {
    name: 'pseudonyms.phones',
    purpose: 'pseudonyms',
    step: backfillPhones(
      () => keys.pseudonym.length > 1,
      async (tx, current) => {
        const { record } = current
        if (!isPseudonym(record.phone)) return
        await tx.phones.save(current, { ...record, phone: upgradePseudonym(keys, record.phone) })
      },
    ),
  },
]

/** @param isNeeded false while there is one version of the key only */
const backfillPhones =
  (
    isNeeded: () => boolean,
    upgrade: (tx: Pick<Stores, 'phones'>, current: LoadedPhone) => Promise<void>,
  ): Backfill['step'] =>
  async (tx, position, limit) => {
    if (!isNeeded()) return undefined
    const rows = await tx.phones.scan(position === '' ? -1 : Number(position), limit)
    for (const { hash } of rows) {
      const current = await tx.phones.loadKept(hash)
      if (current) await upgrade(tx, current)
    }
    const last = rows.at(-1)
    return last && String(last.key)
  }
