import { hostOrigin, recordAudit, type AuditDetails } from '../accounts/audit.ts'
import { notFound } from '../model/errors.ts'
import { isId, type NewId } from '../model/ids.ts'
import { hashPhone, type Keys } from '../model/keys.ts'
import { parsePhone } from '../model/phone.ts'
import type { Clock } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'

/** How many counts were set back: of failed checks, and of admissions that some limit still remembered. */
export type UnlockResult = { checkBudgets: number; admissions: number }

/**
 * Lifts what stops a phone with every application, or an application with every phone: failed checks are forgiven, a
 * lock of 24 hours ends, and sends start to count anew.
 *
 * @param target a phone number, or the id of an application, whose own rates start anew too
 * @throws INVALID_PHONE_NUMBER; NOT_FOUND there is no such application
 */
export async function unlock(
  needs: { store: Store; clock: Clock; newId: NewId; keys: Keys },
  target: string,
): Promise<UnlockResult> {
  const { store, clock, newId, keys } = needs
  const addAuditEntry = (tx: Stores, developerId: string | null, details: AuditDetails) =>
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

/** The subjects of a phone in the log of admissions. Not for a transaction: there is no index, and other writes would wait. */
export const listLimiterSubjects = (store: Store, phoneHash: string): Promise<string[]> =>
  store.read.rateLimits.listSubjectsByPhone(phoneHash)

/** Forgets what limits count of a phone, with every application. @returns also the applications that had counted something */
export async function resetLimiters(tx: Stores, phoneHash: string, subjects: readonly string[]) {
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
