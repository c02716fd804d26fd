/** Whether a text is taken as the last digits of a phone number: digits, without a country code. */
export const isLastDigits = (text: string) => /^(?!00)\d{4,15}$/.test(text.replaceAll(/[ .()-]/g, ''))
