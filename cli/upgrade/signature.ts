/**
 * Checks a signature of `ssh-keygen -Y sign` with an Ed25519 key (OpenSSH, PROTOCOL.sshsig): no program is needed, and
 * ssh-keygen need not be there.
 *
 * @param publicKey line of a public key file: `ssh-ed25519 AAAA…`
 * @param namespace purpose that the signature was made for
 */
export async function isSignedBy(
  publicKey: string,
  namespace: string,
  content: Uint8Array,
  armoredSignature: string,
): Promise<boolean> {
  try {
    const base64 = /-----BEGIN SSH SIGNATURE-----([^-]*)-----END SSH SIGNATURE-----/.exec(
      armoredSignature,
    )?.[1]
    const [algorithm, keyBase64 = ''] = publicKey.trim().split(/\s+/)
    const blob = createReader(Buffer.from(base64 ?? '', 'base64'))
    if (algorithm !== keyType || blob.take(magic.length).toString() !== magic || blob.number() !== 1)
      return false
    const key = blob.string()
    const signedNamespace = blob.string()
    const reserved = blob.string()
    const hash = blob.string()
    const signature = createReader(blob.string())
    const isOurs = key.equals(Buffer.from(keyBase64, 'base64')) && signedNamespace.toString() === namespace
    const hashName = hash.toString()
    if (!isOurs || !['sha512', 'sha256'].includes(hashName) || signature.string().toString() !== keyType)
      return false
    const keyReader = createReader(key)
    if (keyReader.string().toString() !== keyType) return false
    const digest = new Bun.CryptoHasher(hashName === 'sha512' ? 'sha512' : 'sha256').update(content).digest()
    const signed = Buffer.concat([
      Buffer.from(magic),
      ...[signedNamespace, reserved, hash, digest].map(toString),
    ])
    const verifying = await crypto.subtle.importKey(
      'raw',
      new Uint8Array(keyReader.string()),
      'Ed25519',
      false,
      ['verify'],
    )
    return await crypto.subtle.verify('Ed25519', verifying, new Uint8Array(signature.string()), signed)
  } catch {
    // Cut short, or not a signature at all.
    return false
  }
}

const magic = 'SSHSIG'
const keyType = 'ssh-ed25519'

/** Encodes a string of SSH (RFC 4251 §5): its length, then its bytes. */
function toString(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** Reads the values of SSH's encoding. @throws RangeError past the end */
function createReader(bytes: Buffer) {
  let offset = 0
  const take = (length: number) => {
    if (offset + length > bytes.length) throw new RangeError('the signature is cut short')
    offset += length
    return bytes.subarray(offset - length, offset)
  }
  const number = () => take(4).readUInt32BE()
  return { take, number, string: () => take(number()) }
}
