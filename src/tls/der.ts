/** Encodes and finds values in DER (ITU-T X.690), as far as certificate requests and certificates need it. */

export const tags = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  sequence: 0x30,
  set: 0x31,
  /** Context-specific, constructed: `[0]`. */
  context0: 0xa0,
} as const

/** Encodes a value: its tag, its length, its content. */
export function encode(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

/** Encodes a positive integer of big-endian bytes. */
export function encodeInteger(bytes: Uint8Array): Uint8Array {
  const start = bytes.findIndex((byte) => byte !== 0)
  const digits = start === -1 ? Buffer.from([0]) : bytes.subarray(start)
  // A leading bit would make it negative.
  return encode(tags.integer, ...((digits[0] ?? 0) & 0x80 ? [Buffer.from([0])] : []), digits)
}

export const objectIds = {
  /** extensionRequest (PKCS #9). */
  extensionRequest: encode(tags.objectId, Buffer.from('2a864886f70d01090e', 'hex')),
  subjectAltName: encode(tags.objectId, Buffer.from('551d11', 'hex')),
  authorityKeyIdentifier: encode(tags.objectId, Buffer.from('551d23', 'hex')),
  ecdsaWithSha256: encode(tags.objectId, Buffer.from('2a8648ce3d040302', 'hex')),
} as const

/** Finds the key identifier of the issuer in a certificate (RFC 5280 §4.2.1.1); undefined if it has none. */
export function findIssuerKeyId(certificate: Uint8Array): Uint8Array | undefined {
  const der = Buffer.from(certificate)
  const at = der.indexOf(objectIds.authorityKeyIdentifier)
  if (at === -1) return undefined
  // An octet string with a sequence whose first element is [0], all shorter than 128 bytes.
  const keyId = at + objectIds.authorityKeyIdentifier.length + 4
  return der[keyId] === 0x80 ? der.subarray(keyId + 2, keyId + 2 + (der[keyId + 1] ?? 0)) : undefined
}
