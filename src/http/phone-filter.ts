import { invalidField } from '../domain/model/errors.ts'

/**
 * Reads the phone whose records a list shows; undefined for all.
 *
 * @throws INVALID_ARGUMENT `country` without `phone`: it looks like a filter, and all would be listed
 */
export function readPhoneFilter({
  phone,
  country,
}: {
  phone?: string | undefined
  country?: string | undefined
}) {
  if (phone !== undefined) return { phone: withPlus(phone), country }
  if (country === undefined) return undefined
  throw invalidField('query', 'country', 'It only says how phone is written. Send phone too.')
}

/** Restores a plus sign that was not escaped: a query string has one for a space. */
const withPlus = (phone: string) => phone.replace(/^ /, '+')
