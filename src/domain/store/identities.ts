import type { Environment } from '../../shared/otp-values.ts'

/** An identity as 0.1.0 stored it: one per developer and phone, for both environments. */
export type OldIdentity = {
  id: string
  developerId: string
  /** E.164, or its pseudonym. */
  phone: string
  country: string | null
  verificationCount: number
  firstVerifiedAt: number
  lastVerifiedAt: number
  applications: Array<{ id: string; environment: Environment }>
}

/** Identities of 0.1.0, which the first start of a later version moves to the records of phones. */
export type OldIdentityStore = {
  hasAny(): Promise<boolean>
  /** Deletes and returns the first ones in the order of their ids. Of concurrent callers each gets others. */
  take(limit: number): Promise<OldIdentity[]>
}
