/** One value of the configuration file and the line where a person finds it. */
export type FileEntry = { path: readonly string[]; value: unknown; line: number }

export type ParsedFile = { entries: FileEntry[] } | { fault: string; line: number }

/**
 * Reads TOML 1.0 into a flat list of values. A table without keys is an entry too, with `{}` as its value, so
 * that a misspelt heading is seen.
 */
export function parseConfigFile(bytes: Uint8Array): ParsedFile {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return { fault: 'The file is not UTF-8 text.', line: 1 }
  }
  const parsed = parseToml(text)
  if ('fault' in parsed) return { fault: parsed.fault, line: findSyntaxErrorLine(text) }
  const findLine = indexLines(text)
  const entries = flatten(parsed.document, []).map(({ path, value }) => ({
    path,
    value,
    line: findLine(path),
  }))
  return { entries }
}

export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parseToml(text: string): { document: Record<string, unknown> } | { fault: string } {
  try {
    const document: unknown = Bun.TOML.parse(text)
    return isTable(document) ? { document } : { fault: 'The file holds no settings.' }
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    // The parser quotes what it stumbled over, which may be a secret that was put in the wrong place.
    const detail = message.replace('TOML Parse error: ', '').replace(/: ".*"$/s, '')
    return { fault: `The file is not valid TOML: ${detail}.` }
  }
}

/** Bun's parser does not say where it stopped: the faulty statement begins after the longest text that parses. */
function findSyntaxErrorLine(text: string): number {
  const lines = text.split('\n')
  for (let count = lines.length - 1; count > 0; count--) {
    if (!('fault' in parseToml(lines.slice(0, count).join('\n')))) return count + 1
  }
  return 1
}

/** The tables of a list at the top, `[[providers]]`, are numbered from 0: `providers.0.name`. */
function flatten(table: Record<string, unknown>, parent: readonly string[]): Omit<FileEntry, 'line'>[] {
  return Object.entries(table).flatMap(([key, value]) => {
    const path = [...parent, key]
    const isList = parent.length === 0 && Array.isArray(value) && value.length > 0 && value.every(isTable)
    const inner = isList ? Object.fromEntries(value.entries()) : value
    return isTable(inner) && Object.keys(inner).length > 0 ? flatten(inner, path) : [{ path, value }]
  })
}

/** Finds the line that defines a key: the line of the key itself, else of the inline table or heading around it. */
function indexLines(text: string): (path: readonly string[]) => number {
  const definitions: { path: string; line: number }[] = []
  const counts = new Map<string, number>()
  let heading: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const table = /^\s*\[{1,2}([^=]+?)\]{1,2}\s*(?:#.*)?$/.exec(line)?.[1]
    const key = /^\s*((?:"[^"]*"|'[^']*'|[^=#"'[\]])+?)\s*=/.exec(line)?.[1]
    if (table !== undefined) {
      const [list = '', ...rest] = splitKey(table)
      const isItem = rest.length === 0 && /^\s*\[\[/.test(line)
      if (isItem) counts.set(list, (counts.get(list) ?? -1) + 1)
      const index = counts.get(list)
      heading = [list, ...(index === undefined ? [] : [String(index)]), ...rest]
    }
    if (table !== undefined) definitions.push({ path: joinKey(heading), line: index + 1 })
    else if (key !== undefined)
      definitions.push({ path: joinKey([...heading, ...splitKey(key)]), line: index + 1 })
  }
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const line = definitions.find((entry) => entry.path === joinKey(path.slice(0, length)))?.line
      if (line !== undefined) return line
    }
    return 1
  }
}

function splitKey(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|([^.\s"']+)/g)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? '',
  )
}

const joinKey = (path: readonly string[]) => path.join('\u0000')
