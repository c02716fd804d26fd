/** A key pair that the built-in identity provider signs or signed with. */
export type SigningKey = {
  kid: string
  /** JSON Web Key. */
  publicJwk: string
  /** Encrypted under a sub-key of the master key. */
  privateKey: string
  createdAt: number
  /** Null while it signs; afterwards it is still published until the last of its tokens has died. */
  retiredAt: number | null
}

export type SigningKeyStore = {
  /** The newest key that signs. */
  current(): Promise<SigningKey | undefined>
  /** Keys that sign or were retired after a time, newest first. */
  published(retiredAfter: number): Promise<SigningKey[]>
  insert(key: SigningKey): Promise<void>
  retireAll(now: number): Promise<void>
  deleteRetiredBefore(time: number): Promise<void>
}
