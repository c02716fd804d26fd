import type { Keys } from '../model/keys.ts'
import { hashOwnedPhone } from '../model/phone-record.ts'
import { isPlainPhone } from '../model/pseudonyms.ts'
import { loadPhone } from '../otp/phones.ts'
import type { OldRequest } from '../store/otp-requests.ts'
import type { Stores } from '../store/store.ts'
import type { Backfill } from './backfills.ts'

/** Longest list of newer requests of a phone that is followed, so that a batch stays short. */
const linksMax = 5_000

/**
 * Creates the backfill that links the requests of 0.1.0, so that the search by phone finds them. It must come before the backfill
 * that seals them: what is not sealed yet is not linked yet. Oldest first, since each request leads to the one before it.
 */
export const createLinkBackfill = (keys: Pick<Keys, 'context' | 'phone' | 'pseudonym'>): Backfill => ({
  name: 'links.otp_requests',
  purpose: 'seals',
  async step(tx, position, limit) {
    const requests = await tx.otpRequests.listUnsealed(position, limit)
    // Forgotten numbers cannot be searched.
    const searchable = requests.filter(({ phone }) => isPlainPhone(phone))
    const byPhone = Map.groupBy(searchable, (request) => hashOwnedPhone(keys, request))
    // Sorted so that concurrent nodes lock rows in the same order (no deadlock).
    for (const [, ofPhone] of [...byPhone].toSorted(([a], [b]) => (a < b ? -1 : 1)))
      await linkRequests(tx, keys, ofPhone)
    return requests.at(-1)?.id
  },
})

/** Links requests of one phone, oldest first, after those that are linked, and before those sent since the upgrade. */
async function linkRequests(
  tx: Pick<Stores, 'checkBudgets' | 'otpRequests' | 'phones'>,
  keys: Pick<Keys, 'context' | 'phone' | 'pseudonym'>,
  requests: readonly OldRequest[],
): Promise<void> {
  const [oldest] = requests
  const newest = requests.at(-1)
  if (!oldest || !newest) return
  const loaded = await loadPhone(tx, keys, oldest)
  const place = await findPlace(tx, loaded.record.newestRequest, oldest.id)
  if (place === undefined) return
  let previous = place.before
  for (const { id } of requests) {
    if (previous !== null) await tx.otpRequests.setPrevious(id, previous)
    previous = id
  }
  if (place.after !== null) await tx.otpRequests.setPrevious(place.after, newest.id)
  else await tx.phones.save(loaded, { ...loaded.record, newestRequest: newest.id })
}

/** Finds the neighbors of a request in the list of its phone; undefined if it is in the list, or too far back. */
async function findPlace(
  { otpRequests }: Pick<Stores, 'otpRequests'>,
  head: string | null,
  id: string,
): Promise<{ after: string | null; before: string | null } | undefined> {
  let after: string | null = null
  let before = head
  for (let links = 0; before !== null && before >= id; links++) {
    if (before === id || links === linksMax) return undefined
    after = before
    before = (await otpRequests.findPrevious(before)) ?? null
  }
  return { after, before }
}
