/** A current or retired signing key pair of the built-in identity provider. */
export type SigningKey = {
  kid: string
  /** JSON Web Key. */
  publicJwk: string
  /** Encrypted with a key derived from the master key. */
  privateKey: string
  createdAt: number
  /** Null while it signs. A retired key stays published until its last token has expired. */
  retiredAt: number | null
}

export type SigningKeyStore = {
  /** Returns the newest key that is not retired. */
  current(): Promise<SigningKey | undefined>
  /** Lists keys that are not retired or were retired after a time, newest first. */
  published(retiredAfter: number): Promise<SigningKey[]>
  insert(key: SigningKey): Promise<void>
  retireAll(now: number): Promise<void>
  deleteRetiredBefore(time: number): Promise<void>
}
