import { fromHost, recordAudit } from './audit.ts'
import { notFound } from './errors.ts'
import { isId, type NewId } from './ids.ts'
import { hashPhone, type Keys } from './keys.ts'
import { parsePhone } from './phone.ts'
import type { Clock } from './ports.ts'
import type { Store } from './store.ts'

/** How many counts were set back: of failed checks, and of admissions that some limit still remembered. */
export type Unlocked = { checkBudgets: number; admissions: number }

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
): Promise<Unlocked> {
  const { store, clock, newId, keys } = needs
  if (!isId('app', target)) {
    const { phone } = parsePhone(target)
    const { appIds, admissions } = await unlockPhone(store, hashPhone(keys, phone))
    await store.write(async (tx) => {
      for (const appId of appIds) {
        const developerId = (await tx.applications.ownerOf(appId))?.developerId ?? null
        const operator = { developerId, actorId: null, origin: fromHost }
        await recordAudit(tx, newId, operator, { action: 'phone.unlocked', targetId: appId }, clock.now())
      }
    })
    return { checkBudgets: appIds.length, admissions }
  }
  return store.write(async (tx) => {
    const owner = await tx.applications.ownerOf(target)
    if (!owner) throw notFound()
    const { developerId, name: targetName } = owner
    const operator = { developerId, actorId: null, origin: fromHost }
    const deed = { action: 'application.unlocked', targetId: target, targetName } as const
    await recordAudit(tx, newId, operator, deed, clock.now())
    return {
      checkBudgets: await tx.checkBudgets.deleteOfApplication(target),
      admissions: await tx.rateLimits.deleteOfApplication(target),
    }
  })
}

/** Forgets what limits count of a phone, with every application. @returns the applications that had counted failures */
export async function unlockPhone(store: Store, phoneHash: string) {
  // Looked for outside the transaction: there is no index, and other writes would wait.
  const subjects = await store.read.rateLimits.listSubjectsOfPhone(phoneHash)
  return store.write(async (tx) => {
    const appIds = await tx.checkBudgets.deleteOfPhone(phoneHash)
    let admissions = 0
    for (const subject of subjects) admissions += await tx.rateLimits.deleteSubject(subject)
    return { appIds, admissions }
  })
}
