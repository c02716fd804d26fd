/** Decodes a master key: 64 hexadecimal digits, or base64 or base64url with optional padding; undefined for other text. */
export function decodeMasterKey(text: string): Uint8Array | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  return /^[a-z0-9+/_-]{43}=?$/i.test(text) ? Buffer.from(text, 'base64') : undefined
}
