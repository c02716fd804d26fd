import { invalidField, ServiceError } from './errors.ts'

/** Normalizes an address for comparison: trimmed and in lower case. */
export const cleanEmail = (text: string) => text.trim().toLowerCase()

/**
 * Validates an address and returns it in its stored form. Does not check that it receives mail.
 *
 * @throws INVALID_ARGUMENT unless it is text, one `@` and text, of at most 254 characters (RFC 5321
 *   §4.5.3.1.3)
 */
export function requireEmail(text: string): string {
  const email = cleanEmail(text)
  if (email.length <= 254 && /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(email)) return email
  throw invalidField('body', 'email', 'Expected an e-mail address, such as ada@example.com.')
}

/** CONFLICT (EMAIL_TAKEN). */
export const emailTaken = () =>
  new ServiceError('CONFLICT', 'An account with this e-mail address already exists. Use another address.', {
    reason: 'EMAIL_TAKEN',
  })
