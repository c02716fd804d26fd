import { variableNames, type VariableName } from './message-template.ts'
import { invisible, links, longNumber } from './untrusted-text.ts'

/** Amount and payee of a payment. Its code is bound to them, and its message shows them. */
export type MessageVariables = Readonly<Record<VariableName, string>>

/** Characters (UTF-16 units) of each variable. */
export const variableCharactersMax: Readonly<Record<VariableName, number>> = { amount: 24, payee: 40 }

/** Signs that formatting functions write, and the ones of the GSM alphabet that say the same. */
const plainSigns: Readonly<Record<string, string>> = {
  '\u00a0': ' ',
  '\u202f': ' ',
  '‘': "'",
  '’': "'",
  '–': '-',
  '−': '-',
}

/**
 * Writes variables in the form that is bound and shown: composed (NFC), with plain spaces, apostrophes and hyphens, without
 * space at the ends. So an amount that `Intl.NumberFormat` has formatted fits the GSM alphabet, and it does not matter
 * which of these forms a verification repeats.
 */
export const canonicalVariables = (variables: MessageVariables): MessageVariables => ({
  amount: canonical(variables.amount),
  payee: canonical(variables.payee),
})

const canonical = (value: string) =>
  value
    .normalize('NFC')
    .replaceAll(/[\u00a0\u202f‘’–−]/g, (sign) => plainSigns[sign] ?? sign)
    .trim()

/** A number with a currency before or after it: a sign, or up to four letters. A number alone could be taken for the code. */
const currency = String.raw`(?:\p{L}{1,4}\.?|\p{L}{0,3}\p{Sc})`
const amountPattern = new RegExp(
  String.raw`^(?=.*[\p{L}\p{Sc}])(?:-?${currency} ?)?-?[0-9](?:[0-9.,' ]*[0-9])?(?: ?${currency})?$`,
  'u',
)
/** Letters of all scripts, digits and some punctuation; at least one letter or digit. */
const payeePattern = /^(?=.*[\p{L}\p{Nd}])[\p{L}\p{M}\p{Nd} &+'!(),.·*_"-]+$/u

/**
 * Finds what is wrong with a variable that a send gives. It is never changed, since the reader must see the payment that
 * is verified: it is refused if it could be more than an amount or a name.
 *
 * @param value as `canonicalVariables` returns it
 * @returns a sentence
 */
function findVariableFault(name: VariableName, value: string): string | undefined {
  if (value.length > variableCharactersMax[name])
    return `Expected up to ${variableCharactersMax[name]} characters.`
  if (invisible.test(value)) return 'It contains a character that shows nothing. Leave it out.'
  if (name === 'amount')
    return amountPattern.test(value)
      ? undefined
      : 'Expected a number in digits 0 to 9 with its currency before or after it, such as 1,234.50 EUR or €9.99.'
  if (!payeePattern.test(value))
    return 'Expected a name of letters, digits, spaces and & + \' ! ( ) , . · * _ " -.'
  if (links.test(value))
    return 'It contains what phones show as a link. Write a space in the place of the dot.'
  if (longNumber.test(value))
    return 'It contains five or more digits in a row, which can be taken for the code. Leave them out.'
  return undefined
}

/** Lists the variables that a send cannot have. @param variables as `canonicalVariables` returns them */
export const findVariableFaults = (variables: MessageVariables) =>
  variableNames.flatMap((name) => {
    const message = findVariableFault(name, variables[name])
    return message === undefined ? [] : [{ name, message }]
  })
