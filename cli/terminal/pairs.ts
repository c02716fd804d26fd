import { usageError } from './errors.ts'

/**
 * Creates the parser of a repeatable option whose values are pairs, such as `order=4711`.
 *
 * @param example shown in the usage error for a text that is no pair
 */
export const pairsParser = (flag: string, example: string) => (texts: readonly string[]) =>
  Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw usageError(`${flag} must be a pair like ${example}.`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
