import { andThen, type Awaitable } from '../model/awaitable.ts'
import type { CallingApplication } from '../model/application.ts'
import { tryParsePhone, type Phone } from '../model/phone.ts'
import { parseTypedPhone } from '../model/typed-phone.ts'
import type { Store } from '../store/store.ts'

/** A phone number as a call has it, and the country that a number without country code is of. */
export type TypedPhone = { phone: string; country?: string | undefined }

/**
 * Reads the phone number of a call: in E.164, or as it is written in the country that the call names, or else in that of
 * the application.
 *
 * @throws INVALID_PHONE_NUMBER; INVALID_ARGUMENT for an unknown country
 */
export function readTypedPhone(
  { store }: { store: Store<'applications'> },
  { id, developerId }: Pick<CallingApplication, 'id' | 'developerId'>,
  { phone: text, country }: TypedPhone,
): Awaitable<Phone> {
  // Nearly all calls.
  const phone = tryParsePhone(text)
  if (phone) return phone
  if (country !== undefined) return parseTypedPhone(text, country)
  return andThen(store.read.applications.find(developerId, id), (application) =>
    parseTypedPhone(text, application?.defaultCountry ?? undefined),
  )
}
