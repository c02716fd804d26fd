/** How deep lists and objects may stand in each other. No body of the contract needs more than two. */
const depthMax = 32

/** Of a text that is JSON: its strings, each with the colon that makes it a name, and its brackets. */
const tokens = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\]]/g

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
  const open: Array<Set<string>> = []
  for (const [bracket, string, colon] of text.matchAll(tokens)) {
    if (string !== undefined) {
      const plain = readString(string)
      if (!plain.isWellFormed() || plain.includes('\0')) {
        throw new SyntaxError('The body has a text with NUL or half a character in it.')
      }
      if (colon === undefined) continue
      const names = open.at(-1)
      if (names?.has(plain)) throw new SyntaxError('The body names a property twice.')
      names?.add(plain)
    } else if (bracket === '}' || bracket === ']') {
      open.pop()
    } else if (open.push(new Set()) > depthMax) {
      throw new SyntaxError('The body is nested too deeply.')
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

const readString = (quoted: string) =>
  quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1)
