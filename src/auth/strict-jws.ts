/**
 * Whether a token is three parts of strict base64url (RFC 7515 §2): without padding, other characters, or bits after the
 * last byte, which decoders ignore. One token so has one form, and its hash identifies it.
 */
export function isStrictJws(token: string): boolean {
  const parts = token.split('.')
  return (
    parts.length === 3 && parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
  )
}
