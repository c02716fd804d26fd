/** Somebody with an account: the owner of projects and of all that is in them. */
export type Developer = {
  id: string
  /** Null while an account that the operator made waits for its first login. */
  issuer: string | null
  subject: string | null
  email: string | null
  name: string | null
  company: string | null
  plan: string
  /** `+999` and ten digits; belongs to this developer alone. */
  virtualPhone: string
  status: 'active' | 'disabled'
  createdAt: number
  updatedAt: number
}

export type DeveloperStore = {
  find(id: string): Promise<Developer | undefined>
  findByVirtualPhone(phone: string): Promise<Developer | undefined>
  insert(developer: Developer): Promise<void>
  /** Holds the developer until the transaction ends, so that what is counted for a limit stays true. */
  lock(id: string): Promise<void>
}
