import { hostOrigin } from '../model/audit.ts'
import { recordAudit, type AuditDetails } from '../accounts/audit.ts'
import { notFound } from '../model/errors.ts'
import { isId, type NewId } from '../model/ids.ts'
import { hashPhone, type Keys } from '../model/keys.ts'
import { parsePhone } from '../model/phone.ts'
import type { Clock } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'

/** Number of reset records: budgets of failed checks, and rate limit admissions. */
export type UnlockResult = { checkBudgets: number; admissions: number }

/**
 * Resets the limits of a phone number in all applications, or of an application for all phone numbers: forgets failed
 * checks, ends 24-hour locks and resets send limits.
 *
 * @param target a phone number, or the id of an application, whose own rate limits are reset too
 * @throws INVALID_PHONE_NUMBER; NOT_FOUND the application does not exist
 */
export async function unlock(
  needs: {
    store: Store<'applications' | 'audit' | 'checkBudgets' | 'rateLimits'>
    clock: Clock
    newId: NewId
    keys: Keys
  },
  target: string,
): Promise<UnlockResult> {
  const { store, clock, newId, keys } = needs
  const addAuditEntry = (tx: Pick<Stores, 'audit'>, developerId: string | null, details: AuditDetails) =>
    recordAudit(tx, newId, { developerId, actorId: null, origin: hostOrigin }, details, clock.now())

  if (!isId('app', target)) {
    const phoneHash = hashPhone(keys, parsePhone(target).phone)
    const subjects = await listLimiterSubjects(store, phoneHash)
    return store.write(async (tx) => {
      const { appIds, ...counts } = await resetLimiters(tx, phoneHash, subjects)
      for (const targetId of appIds) {
        const owner = await tx.applications.findOwner(targetId)
        await addAuditEntry(tx, owner?.developerId ?? null, { action: 'phone.unlocked', targetId })
      }
      return counts
    })
  }
  return store.write(async (tx) => {
    const owner = await tx.applications.findOwner(target)
    if (!owner) throw notFound()
    const details = { action: 'application.unlocked', targetId: target, targetName: owner.name } as const
    await addAuditEntry(tx, owner.developerId, details)
    return {
      checkBudgets: await tx.checkBudgets.deleteByApplication(target),
      admissions: await tx.rateLimits.deleteByApplication(target),
    }
  })
}

/** Lists the rate limit subjects of a phone number. Scans without an index, so never call it in a transaction. */
export const listLimiterSubjects = (store: Store<'rateLimits'>, phoneHash: string): Promise<string[]> =>
  store.read.rateLimits.listSubjectsByPhone(phoneHash)

/**
 * Resets the limits of a phone number in all applications.
 *
 * @returns the numbers of deleted records and the affected applications
 */
export async function resetLimiters(
  tx: Pick<Stores, 'checkBudgets' | 'rateLimits'>,
  phoneHash: string,
  subjects: readonly string[],
) {
  const failedAppIds = await tx.checkBudgets.deleteByPhone(phoneHash)
  const appIds = new Set(failedAppIds)
  let admissions = 0
  for (const subject of subjects) {
    const deleted = await tx.rateLimits.deleteSubject(subject)
    if (deleted > 0) appIds.add(subject.slice(0, subject.indexOf(':')))
    admissions += deleted
  }
  return { appIds, checkBudgets: failedAppIds.length, admissions }
}
