import { isRepeatableName } from './caller-names.ts'

/** Maximum nesting of arrays and objects. No request of the API needs more than two levels. */
const depthMax = 32

/** A string where a search begins, and the colon that follows the name of a property. */
const stringToken = /"([^"\\]*(?:\\.[^"\\]*)*)"([ \t\r\n]*:)?/y

/**
 * Parses JSON that every parser reads the same way (I-JSON, RFC 7493 §2): no duplicate names and no unpaired surrogates.
 * Also rejects NUL, which not every database can store, and nesting that could overflow the stack of later recursion.
 *
 * @throws SyntaxError with a message that quotes no part of the text but a repeatable name
 */
export function parseStrictJson(text: string): unknown {
  const value = parse(text)
  /** Property names of every open object; an empty set for an array. */
  const openObjects: Array<Set<string>> = []
  // A loop over characters takes half the time of a regular expression for all tokens.
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (character === '"') {
      stringToken.lastIndex = index
      const [token = '', quoted = '', colon] = stringToken.exec(text) ?? []
      index += token.length - 1
      const name = quoted.includes('\\') ? String(JSON.parse(`"${quoted}"`)) : quoted
      if (!name.isWellFormed() || name.includes('\0'))
        throw new SyntaxError('A string contains NUL or an unpaired surrogate.')
      if (colon === undefined) continue
      const names = openObjects.at(-1)
      if (names?.has(name)) {
        const which = isRepeatableName(name) ? `the property ${name}` : 'a property name'
        throw new SyntaxError(`The body repeats ${which} within one object. Send each property once.`)
      }
      names?.add(name)
    } else if (character === '}' || character === ']') {
      openObjects.pop()
    } else if (character === '{' || character === '[') {
      if (openObjects.push(new Set()) > depthMax)
        throw new SyntaxError(`The body is nested more than ${depthMax} levels deep.`)
    }
  }
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SyntaxError('The body is not valid JSON.')
  }
}
