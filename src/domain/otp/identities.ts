import { dayOf } from '../log/analytics.ts'
import type { Developer } from '../accounts/developers.ts'
import { notFound } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { pageOf, readPosition, type Page, type PageRequest } from '../model/pages.ts'
import { pseudonymOf } from '../model/pseudonyms.ts'
import type { Store, Stores } from '../store/store.ts'

/** A phone number that somebody proved to hold. One for each developer and phone. */
export type Identity = {
  id: string
  developerId: string
  phone: string
  country: string | null
  verificationCount: number
  firstVerifiedAt: number
  lastVerifiedAt: number
}

/** @param applications ids of those that verified it, in the order of their creation */
export type IdentityWithApplications = Identity & { applications: string[] }

export type IdentityStore = {
  /** The one with this phone, or else with the pseudonym that stands for it. */
  findByPhone(developerId: string, phone: string, pseudonym: string): Promise<Identity | undefined>
  applicationsOf(identityIds: string[]): Promise<Map<string, string[]>>
  list(developerId: string, limit: number, before?: string): Promise<Identity[]>
  /** False where the developer has one of this phone already. */
  insert(identity: Identity): Promise<boolean>
  /** Puts the number back where its pseudonym still stands. */
  restorePhone(known: Identity, phone: string): Promise<void>
  /** Counts one more verification. False where there was another since `known` was read, or its phone was replaced. */
  countVerification(known: Identity, now: number): Promise<boolean>
  /** Does nothing where the application is there already. */
  addApplication(identityId: string, appId: string): Promise<void>
}

export type Verification = {
  developerId: string
  appId: string
  phone: string
  country: string | null
  verifiedAt: number
}

/**
 * Makes the identity at its first verification and counts the later ones. Part of the transaction that verifies. Holds
 * also where several applications of one developer verify the same phone at once, and where it was away for so long that
 * a pseudonym stands for it.
 *
 * @returns what it changes in the count of active identities
 */
export async function recordVerification(
  tx: Stores,
  newId: NewId,
  keys: Pick<Keys, 'pseudonym'>,
  verification: Verification,
): Promise<{ leavesDay: number | undefined; entersDay: number | undefined }> {
  const { developerId, phone, appId, verifiedAt } = verification
  const today = dayOf(verifiedAt)
  const pseudonym = pseudonymOf(keys, developerId, phone)
  for (;;) {
    const known = await tx.identities.findByPhone(developerId, phone, pseudonym)
    if (known && known.phone !== phone) {
      await tx.identities.restorePhone(known, phone)
      continue
    }
    const identity = known ?? firstOf(newId, verification)
    const written = known
      ? await tx.identities.countVerification(known, verifiedAt)
      : await tx.identities.insert(identity)
    // Another application was faster. What it wrote is committed by now.
    if (!written) continue
    await tx.identities.addApplication(identity.id, appId)
    if (!known) return { leavesDay: undefined, entersDay: today }
    const lastDay = dayOf(known.lastVerifiedAt)
    return lastDay === today
      ? { leavesDay: undefined, entersDay: undefined }
      : { leavesDay: lastDay, entersDay: today }
  }
}

const firstOf = (newId: NewId, { developerId, phone, country, verifiedAt }: Verification): Identity => ({
  id: newId('idn'),
  developerId,
  phone,
  country,
  verificationCount: 1,
  firstVerifiedAt: verifiedAt,
  lastVerifiedAt: verifiedAt,
})

export type IdentityService = ReturnType<typeof createIdentityService>

export function createIdentityService(needs: { store: Store; keys: Pick<Keys, 'pseudonym'> }) {
  const { identities } = needs.store.read

  async function withApplications(rows: Identity[]): Promise<IdentityWithApplications[]> {
    const applications = await identities.applicationsOf(rows.map((row) => row.id))
    return rows.map((row) => ({ ...row, applications: applications.get(row.id) ?? [] }))
  }

  return {
    /** Newest first. @throws INVALID_ARGUMENT (CURSOR_INVALID) */
    async list(developer: Developer, page: PageRequest): Promise<Page<IdentityWithApplications>> {
      const before = readPosition(page, 'idn')
      const rows = await identities.list(developer.id, page.limit + 1, before)
      const cut = pageOf(rows, page.limit, (row) => row.id)
      return { ...cut, items: await withApplications(cut.items) }
    },

    /** @param phone E.164 @throws NOT_FOUND */
    async getByPhone(developerId: string, phone: string): Promise<IdentityWithApplications> {
      const pseudonym = pseudonymOf(needs.keys, developerId, phone)
      const found = await identities.findByPhone(developerId, phone, pseudonym)
      const [identity] = found ? await withApplications([found]) : []
      if (!identity) throw notFound()
      // Whoever asks for the number knows it.
      return { ...identity, phone }
    },
  }
}
