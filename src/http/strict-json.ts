/** How deep lists and objects may stand in each other. No body of the contract needs more than two. */
const depthMax = 32

/**
 * Reads JSON that every reader understands in the same way (I-JSON, RFC 7493 §2): no name twice in an object, no half
 * of a character. NUL, which not every database can hold, is refused as well, and so is a nesting that could exhaust
 * the stack of whoever looks at the value.
 *
 * @throws SyntaxError with a sentence that repeats nothing of the text
 */
export function parseStrictJson(text: string): unknown {
  const value = parse(text)
  /** The names of every object that is open, and nothing for a list. */
  const openObjects: Array<Set<string>> = []
  // Character by character: to find strings and brackets by a regular expression takes twice as long.
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (character === '"') {
      const start = index
      index = endOfString(text, start)
      const name = readString(text.slice(start, index + 1))
      if (!isPropertyName(text, index)) continue
      const names = openObjects.at(-1)
      if (names?.has(name))
        throw new SyntaxError('The body repeats a property name within one object. Send each property once.')
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

/** Where the quotation mark stands that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = start + 1
  while (text[end] !== '"') end += text[end] === '\\' ? 2 : 1
  return end
}

/** Whether a colon follows the string that ends at `end`. */
function isPropertyName(text: string, end: number): boolean {
  let next = end + 1
  while (text[next] === ' ' || text[next] === '\n' || text[next] === '\r' || text[next] === '\t') next++
  return text[next] === ':'
}

function readString(quoted: string): string {
  const decoded = quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1)
  if (decoded.isWellFormed() && !decoded.includes('\0')) return decoded
  throw new SyntaxError('A string contains NUL or an unpaired surrogate.')
}
