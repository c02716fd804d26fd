import { invalidField, ServiceError } from './errors.ts'

/** Addresses are compared as people type them: without spaces around and in lower case. */
export const cleanEmail = (text: string) => text.trim().toLowerCase()

/**
 * An address in the form that is stored. Whether mail arrives there is not asked.
 *
 * @throws INVALID_ARGUMENT not one `@` with something on both sides, or over 254 characters (RFC 5321 §4.5.3.1.3)
 */
export function requireEmail(text: string): string {
  const email = cleanEmail(text)
  if (email.length <= 254 && /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(email)) return email
  throw invalidField('body', 'email', 'Expected an email address, such as ada@example.com.')
}

export const emailTaken = () =>
  new ServiceError('CONFLICT', 'An account with this email address already exists. Use another address.', {
    reason: 'EMAIL_TAKEN',
  })
