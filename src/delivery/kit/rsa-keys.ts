import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'

const isRsa = (read: () => KeyObject): boolean => {
  try {
    return read().asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

/** Tells whether a text is an RSA public key in PEM. */
export const isRsaPublicKey = (pem: string) => isRsa(() => createPublicKey(pem))

/** Tells whether a text is an RSA private key in PEM. */
export const isRsaPrivateKey = (pem: string) => isRsa(() => createPrivateKey(pem))
