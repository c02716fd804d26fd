/** A phone number whose possession was verified. One per developer and phone. */
export type Identity = {
  id: string
  developerId: string
  phone: string
  country: string | null
  verificationCount: number
  firstVerifiedAt: number
  lastVerifiedAt: number
}

/** An identity with the ids of the applications that verified it, in the order of their creation. */
export type IdentityWithApplications = Identity & { applications: string[] }
