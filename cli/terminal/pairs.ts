import { usageError } from './errors.ts'
import { printable } from './text.ts'

/** Collects the values of an option that may be repeated. */
export const collect = (text: string, earlier: string[] = []) => [...earlier, text]

/**
 * Creates the parser of a repeatable option whose values are pairs, such as `order=4711`.
 *
 * @param example shown in the usage error for a text that is no pair
 */
export const pairsParser = (flag: string, example: string) => (texts: readonly string[]) => {
  const pairs = new Map<string, string>()
  for (const text of texts) {
    const at = text.indexOf('=')
    if (at < 1) throw usageError(`${flag} must be a pair like ${example}.`)
    const name = text.slice(0, at)
    if (pairs.has(name)) throw usageError(`${flag} ${printable(name)} is given twice.`, 'Keep one of them.')
    pairs.set(name, text.slice(at + 1))
  }
  return Object.fromEntries(pairs)
}

const variablesParser = pairsParser('--variable', 'amount=9.99')

/** Reads the variables of a payment that are given. @throws usage error for another name */
export function readSomeVariables(texts: readonly string[]): { amount?: string; payee?: string } {
  const { amount, payee, ...others } = variablesParser(texts)
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw usageError(`There is no variable ${printable(unknown)}.`, 'Use amount and payee.')
  return { ...(amount !== undefined && { amount }), ...(payee !== undefined && { payee }) }
}

/** Reads the variables of a payment. @throws usage error unless both are given */
export function readVariables(texts: readonly string[]): { amount: string; payee: string } {
  const { amount, payee } = readSomeVariables(texts)
  if (amount === undefined || payee === undefined)
    throw usageError('A payment has an amount and a payee.', 'Pass --variable amount=… --variable payee=…')
  return { amount, payee }
}
