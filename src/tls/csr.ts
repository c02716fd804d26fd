import { encode, encodeInteger, objectIds, tags } from './der.ts'

/** Builds a certificate request (PKCS #10, RFC 2986) in DER for a P-256 key: the names as subjectAltName, no subject. */
export async function createRequest(
  names: readonly string[],
  { publicKey, privateKey }: CryptoKeyPair,
): Promise<Uint8Array> {
  const { sequence, set, octetString, bitString, context0, integer } = tags
  const dnsName = 0x82
  const altNames = encode(sequence, ...names.map((name) => encode(dnsName, Buffer.from(name, 'latin1'))))
  const extension = encode(sequence, objectIds.subjectAltName, encode(octetString, altNames))
  const attribute = encode(sequence, objectIds.extensionRequest, encode(set, encode(sequence, extension)))
  const publicKeyInfo = new Uint8Array(await crypto.subtle.exportKey('spki', publicKey))
  const version = encode(integer, Buffer.from([0]))
  const info = encode(sequence, version, encode(sequence), publicKeyInfo, encode(context0, attribute))
  const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
  const signature = new Uint8Array(await crypto.subtle.sign(algorithm, privateKey, new Uint8Array(info)))
  const half = signature.length / 2
  const asDer = encode(
    sequence,
    encodeInteger(signature.subarray(0, half)),
    encodeInteger(signature.subarray(half)),
  )
  return encode(
    sequence,
    info,
    encode(sequence, objectIds.ecdsaWithSha256),
    encode(bitString, Buffer.from([0]), asDer),
  )
}
