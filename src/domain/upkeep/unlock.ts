import { hostOrigin, type Actor } from '../model/audit.ts'
import { recordAudit, selfActor, type AuditDetails } from '../accounts/audit.ts'
import { notFound } from '../model/errors.ts'
import { isId, type NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { parsePhone } from '../model/phone.ts'
import { trustLevels, noUsage, noUsages, type PhoneRecord } from '../model/phone-record.ts'
import { parseTypedPhone } from '../model/typed-phone.ts'
import type { Clock } from '../model/clock.ts'
import { findPhone, oldPhoneHashes } from '../otp/phones.ts'
import { scanPages } from './scan-pages.ts'
import type { Store, Stores } from '../store/store.ts'

/** Number of reset budgets of failed checks, and of forgotten sends. */
export type UnlockResult = { checkBudgets: number; admissions: number }

type UnlockTables = 'applications' | 'audit' | 'checkBudgets' | 'developers' | 'phones' | 'rateLimits'

const pageRows = 500

/**
 * Resets the limits of a phone number, in all spellings, for all developers, or those of all phone numbers of an
 * application's developer in its environment: forgets failed checks, ends 24-hour locks and resets send limits.
 *
 * @param target a phone number, or the id of an application, whose own rate limits are reset too
 * @param country of a number without country code
 * @throws INVALID_PHONE_NUMBER; INVALID_ARGUMENT for an unknown country; NOT_FOUND the application does not exist
 */
export async function unlock(
  needs: { store: Store<UnlockTables>; clock: Clock; newId: NewId; keys: Keys },
  target: string,
  country?: string,
): Promise<UnlockResult> {
  if (isId('app', target)) return unlockApplication(needs, target)
  return unlockPhone(needs, parseTypedPhone(target, country).phone)
}

type UnlockNeeds = Parameters<typeof unlock>[0]

const addAuditEntry = (
  tx: Pick<Stores, 'audit'>,
  { newId, clock }: UnlockNeeds,
  developerId: string,
  details: AuditDetails,
  actor?: Actor,
) => {
  const by = actor ? selfActor(actor) : { developerId, actorId: null, origin: hostOrigin }
  return recordAudit(tx, newId, by, details, clock.now())
}

/**
 * Resets the limits of a phone number, in all spellings.
 *
 * @param actor the developer whose limits are reset; undefined: the operator, those of all developers
 * @throws INVALID_PHONE_NUMBER; NOT_FOUND nothing is kept about the phone of the actor
 */
export async function unlockPhone(needs: UnlockNeeds, target: string, actor?: Actor): Promise<UnlockResult> {
  const { store, keys } = needs
  const { phone } = parsePhone(target)
  const oldHashes = oldPhoneHashes(keys, phone)
  const developers = actor ? [actor] : await store.read.developers.list()
  return store.write(async (tx) => {
    const counts = { checkBudgets: 0, admissions: 0 }
    for (const { id: developerId } of developers) {
      const old = await tx.checkBudgets.delete({ developerId, phoneHashes: oldHashes })
      const reset = { checkBudgets: old, admissions: 0 }
      let isKnown = old > 0
      for (const environment of ['live', 'test'] as const) {
        const found = await findPhone(tx, keys, { developerId, environment, phone })
        if (!found) continue
        isKnown = true
        addCounts(reset, await resetRecord(tx, found.hash))
      }
      if (actor && !isKnown) throw notFound('phone')
      if (reset.checkBudgets + reset.admissions === 0) continue
      addCounts(counts, reset)
      await addAuditEntry(tx, needs, developerId, { action: 'phone.unlocked' }, actor)
    }
    return counts
  })
}

async function unlockApplication(needs: UnlockNeeds, appId: string): Promise<UnlockResult> {
  const { store } = needs
  const owner = await store.read.applications.findOwner(appId)
  if (!owner) throw notFound('application')
  const { developerId, name, environment } = owner
  const counts = { checkBudgets: 0, admissions: 0 }
  for await (const rows of scanPages(store.read.phones.scan, ({ key }) => key, -1, pageRows)) {
    const matching = rows.filter(
      ({ record }) =>
        record.developerId === developerId && record.environment === environment && isUsed(record),
    )
    if (matching.length === 0) continue
    const reset = await store.write(async (tx) => {
      const page = { checkBudgets: 0, admissions: 0 }
      for (const { hash } of matching) addCounts(page, await resetRecord(tx, hash))
      return page
    })
    addCounts(counts, reset)
  }
  await store.write(async (tx) => {
    counts.checkBudgets += await tx.checkBudgets.deleteByApplication(appId)
    counts.admissions += await tx.rateLimits.forget(appId)
    const details = { action: 'application.unlocked', targetId: appId, targetName: name } as const
    await addAuditEntry(tx, needs, developerId, details)
  })
  return counts
}

/** Clears the budgets of a record. */
async function resetRecord(tx: Pick<Stores, 'phones'>, hash: string): Promise<UnlockResult> {
  const loaded = await tx.phones.loadKept(hash)
  if (!loaded || !isUsed(loaded.record)) return { checkBudgets: 0, admissions: 0 }
  const { record } = loaded
  tx.phones.save(loaded, { ...record, usages: noUsages })
  const usages = trustLevels.map((trust) => record.usages[trust])
  return {
    checkBudgets: usages.filter(({ checks }) => checks !== null).length,
    admissions: usages.reduce((sum, { sends }) => sum + sends.length, 0),
  }
}

const isUsed = (record: PhoneRecord) => trustLevels.some((trust) => record.usages[trust] !== noUsage)

function addCounts(counts: UnlockResult, more: UnlockResult): void {
  counts.checkBudgets += more.checkBudgets
  counts.admissions += more.admissions
}
