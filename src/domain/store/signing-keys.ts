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
  /** Inserts a current key. @returns false if there is one already, which another node may have inserted meanwhile */
  insert(key: SigningKey): Promise<boolean>
  retireAll(now: number): Promise<void>
  deleteRetiredBefore(time: number): Promise<void>
}
