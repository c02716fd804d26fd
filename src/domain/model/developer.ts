/** A developer account (tenant): owns projects and everything in them. */
export type Developer = {
  id: string
  /** Null for an invited account until its first login. */
  issuer: string | null
  subject: string | null
  /** Lower case, and verified by its issuer, because operators identify accounts by it. */
  email: string | null
  name: string | null
  company: string | null
  plan: string
  /** `+999` and ten digits; unique. */
  virtualPhone: string
  status: 'active' | 'disabled'
  /** ID tokens issued before this time are refused; whole seconds, in milliseconds since the epoch. */
  tokensValidFrom: number
  createdAt: number
  updatedAt: number
}

export type DeveloperChanges = {
  name?: string | undefined
  company?: string | null | undefined
  plan?: string
  status?: Developer['status']
}

/** Returns true for an anonymized developer: only `anonymize` leaves neither a subject nor an address. */
export const isAnonymized = ({ issuer, email }: Pick<Developer, 'issuer' | 'email'>) =>
  issuer === null && email === null
