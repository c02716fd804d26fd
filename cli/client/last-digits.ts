/** Whether a text is taken as the last digits of a phone number: digits, without a country code. */
export const isLastDigits = (text: string) => /^(?!00)\d{4,15}$/.test(text.replaceAll(/[ .()-]/g, ''))

/** Reads the last digits of a phone number, without the trunk prefix of a national one: `07700 900123` ends `+447700900123`. */
export const readLastDigits = (text: string) => text.replaceAll(/\D/g, '').replace(/^0(?=\d{6})/, '')
