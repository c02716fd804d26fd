import { parsePhoneNumberFromString } from 'libphonenumber-js/max/es6'

/** Writes a number in groups, as people read it: `+44 7700 900123`. */
export const formatPhone = (phone: string): string =>
  parsePhoneNumberFromString(phone, { extract: false })?.formatInternational() ?? phone

/** Hides a number that the end user did not enter, but for its calling code and its last two digits. */
export function maskPhone(phone: string): string {
  const [prefix = '', ...groups] = formatPhone(phone).split(' ')
  let left = groups.join('').replaceAll(/\D/g, '').length - 2
  return [
    prefix,
    ...groups.map((group) => group.replaceAll(/\d/g, (digit) => (left-- > 0 ? '•' : digit))),
  ].join(' ')
}
