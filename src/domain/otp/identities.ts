import { utcDay } from '../log/analytics.ts'
import type { Developer } from '../model/developer.ts'
import { notFound } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import { derivePseudonym } from '../model/pseudonyms.ts'
import type { Store, Stores } from '../store/store.ts'
import type { Identity, IdentityWithApplications } from '../model/identity.ts'

export type Verification = {
  developerId: string
  appId: string
  phone: string
  country: string | null
  verifiedAt: number
}

/**
 * Creates the identity at its first verification and counts later ones, in the transaction that verifies.
 * Correct also if several applications of one developer verify the same phone concurrently, and if the phone
 * was pseudonymized since its last verification.
 *
 * @returns the UTC days to adjust in the count of active identities
 */
export async function recordVerification(
  tx: Pick<Stores, 'identities'>,
  newId: NewId,
  keys: Pick<Keys, 'pseudonym'>,
  verification: Verification,
): Promise<{ removedFromDay: number | undefined; addedToDay: number | undefined }> {
  const { developerId, phone, appId, verifiedAt } = verification
  const today = utcDay(verifiedAt)
  const pseudonym = derivePseudonym(keys, developerId, phone)
  for (;;) {
    const existing = await tx.identities.findByPhone(developerId, phone, pseudonym)
    if (existing && existing.phone !== phone) {
      await tx.identities.restorePhone(existing, phone)
      continue
    }
    const identity = existing ?? newIdentity(newId, verification)
    const isWritten = existing
      ? await tx.identities.countVerification(existing, verifiedAt)
      : await tx.identities.insert(identity)
    // Another application was faster. Its write is committed by now: read again.
    if (!isWritten) continue
    await tx.identities.addApplication(identity.id, appId)
    if (!existing) return { removedFromDay: undefined, addedToDay: today }
    const lastDay = utcDay(existing.lastVerifiedAt)
    return lastDay === today
      ? { removedFromDay: undefined, addedToDay: undefined }
      : { removedFromDay: lastDay, addedToDay: today }
  }
}

const newIdentity = (newId: NewId, { developerId, phone, country, verifiedAt }: Verification): Identity => ({
  id: newId('idn'),
  developerId,
  phone,
  country,
  verificationCount: 1,
  firstVerifiedAt: verifiedAt,
  lastVerifiedAt: verifiedAt,
})

export type IdentityService = ReturnType<typeof createIdentityService>

/** Reads identities for their developer. */
export function createIdentityService(needs: { store: Store<'identities'>; keys: Pick<Keys, 'pseudonym'> }) {
  const { identities } = needs.store.read

  async function withApplications(rows: Identity[]): Promise<IdentityWithApplications[]> {
    const applications = await identities.applicationsByIdentity(rows.map((row) => row.id))
    return rows.map((row) => ({ ...row, applications: applications.get(row.id) ?? [] }))
  }

  return {
    /** Lists identities, newest first. @throws INVALID_ARGUMENT (CURSOR_INVALID) */
    async list(developer: Developer, page: PageRequest): Promise<Page<IdentityWithApplications>> {
      const before = readIdCursor(page, 'idn')
      const rows = await identities.list(developer.id, page.limit + 1, before)
      const identityPage = toPage(rows, page.limit, (row) => row.id)
      return { ...identityPage, items: await withApplications(identityPage.items) }
    },

    /** Finds the identity of a phone. @param phone E.164 @throws NOT_FOUND */
    async getByPhone(developerId: string, phone: string): Promise<IdentityWithApplications> {
      const pseudonym = derivePseudonym(needs.keys, developerId, phone)
      const found = await identities.findByPhone(developerId, phone, pseudonym)
      const [identity] = found ? await withApplications([found]) : []
      if (!identity) throw notFound()
      // The stored phone may be a pseudonym; the caller knows the number.
      return { ...identity, phone }
    },
  }
}
