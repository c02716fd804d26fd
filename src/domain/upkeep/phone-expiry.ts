import { checkBudgetLifetimeMs } from '../limits/check-budget.ts'
import { lowestId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import {
  ownedPhoneHashes,
  knownContexts,
  trustLevels,
  type TrustLevel,
  type PhoneUsage,
  noUsage,
  type PhoneRecord,
  type OwnedPhone,
} from '../model/phone-record.ts'
import { derivePseudonym, isPlainPhone } from '../model/pseudonyms.ts'
import type { Store, Stores } from '../store/store.ts'

/** Longest list of requests that is followed; it ends there. Without limits one number can get millions of codes. */
const linksMax = 5_000
/** Phones whose links were cut in this run, so that each is followed once. */
const cutPhonesMax = 100_000

/**
 * Removes what is too old from the record of a phone: its number, contexts after 180 days, the link to its requests, and
 * the whole record of a phone that was never verified, once its budgets are full again.
 *
 * @param phonesUntil numbers last used up to this time get a pseudonym; undefined keeps them
 * @returns the same object if nothing is too old; undefined to delete the record
 */
export function expirePhone(
  keys: Pick<Keys, 'pseudonym'>,
  record: PhoneRecord,
  now: number,
  phonesUntil: number | undefined,
): PhoneRecord | undefined {
  const { identity, lastSentAt, newestRequest, developerId, phone } = record
  const isLinked = newestRequest !== null && !isLinkOld(newestRequest, phonesUntil)
  const expire = (trust: TrustLevel) => expireUsage(record, trust, now)
  const usages = { device: expire('device'), network: expire('network'), stranger: expire('stranger') }
  const isUnused = trustLevels.every((trust) => usages[trust] === noUsage)
  if (identity === null && isUnused && !isLinked) return undefined
  const isPhoneOld = phonesUntil !== undefined && (identity?.lastVerifiedAt ?? lastSentAt) <= phonesUntil
  const expired = {
    ...record,
    phone: isPhoneOld && isPlainPhone(phone) ? derivePseudonym(keys, developerId, phone) : phone,
    contexts: knownContexts(record, now),
    newestRequest: isLinked ? newestRequest : null,
    usages,
  }
  const isSame =
    expired.phone === phone &&
    expired.contexts.length === record.contexts.length &&
    expired.newestRequest === newestRequest &&
    trustLevels.every((trust) => usages[trust] === record.usages[trust])
  return isSame ? record : expired
}

/** Empties what is idle; returns the same object if nothing is. */
function expireUsage({ usages, lastSentAt }: PhoneRecord, trust: TrustLevel, now: number): PhoneUsage {
  const usage = usages[trust]
  const idleAt = now - checkBudgetLifetimeMs
  const checks = usage.checks !== null && usage.checks.refilledAt > idleAt ? usage.checks : null
  // As late as that, so that the scan does not write every phone of yesterday.
  const sends = lastSentAt > idleAt ? usage.sends : []
  if (checks === null && sends.length === 0) return noUsage
  return checks === usage.checks && sends === usage.sends ? usage : { checks, sends }
}

const isLinkOld = (requestId: string, until: number | undefined) =>
  until !== undefined && requestId < lowestId('otp', until)

type LinkTables = 'otpRequests' | 'phones'

/**
 * Cuts the links from a phone's records to its requests before an id, which are about to get a pseudonym: otherwise the
 * list would lead from the number to them.
 *
 * @returns for the given requests, a function that cuts in the transaction that pseudonymizes them
 */
export function createLinkCutter(
  store: Pick<Store<LinkTables>, 'read'>,
  keys: Pick<Keys, 'phone'>,
  before: string,
) {
  const { phones, otpRequests } = store.read
  const cutHashes = new Set<string>()

  /** Finds the first request of the list whose link leads to an old one; null if it is the record itself. */
  async function findLastYoung(newest: string): Promise<string | null | undefined> {
    if (newest < before) return null
    let young = newest
    for (let links = 0; links < linksMax; links++) {
      const previous = await otpRequests.findPrevious(young)
      if (previous === undefined) return undefined
      if (previous < before) return young
      young = previous
    }
    return young
  }

  return async (requests: readonly OwnedPhone[]) => {
    const hashes = new Set(
      requests.flatMap((request) => ownedPhoneHashes(keys, request)).filter((hash) => !cutHashes.has(hash)),
    )
    const youngRequests: string[] = []
    const unlinked: string[] = []
    for (const hash of hashes) {
      const record = await phones.find(hash)
      const lastYoung = record?.newestRequest ? await findLastYoung(record.newestRequest) : undefined
      if (lastYoung === null) unlinked.push(hash)
      else if (lastYoung) youngRequests.push(lastYoung)
    }
    return async (tx: Pick<Stores, LinkTables>): Promise<void> => {
      for (const hash of unlinked) {
        const current = await tx.phones.loadKept(hash)
        const newestRequest = current?.record.newestRequest ?? null
        if (current && newestRequest !== null && newestRequest < before)
          tx.phones.save(current, { ...current.record, newestRequest: null })
      }
      for (const id of youngRequests) await tx.otpRequests.setPrevious(id, null)
      if (cutHashes.size > cutPhonesMax) cutHashes.clear()
      for (const hash of hashes) cutHashes.add(hash)
    }
  }
}
