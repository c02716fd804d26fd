import { readFileSync } from 'node:fs'

/** Lists the forms of a text in a file: as it is, in hex, and in base64 at each of the three offsets. */
function listForms(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  const forms = [text, bytes.toString('hex'), bytes.toString('hex').toUpperCase()]
  for (const padding of [0, 1, 2]) {
    const padded = Buffer.concat([Buffer.alloc(padding), bytes])
    // Without the characters at both ends, which depend on the bytes around the text.
    const end = Math.floor((padded.length * 4) / 3)
    const start = padding === 0 ? 0 : padding + 1
    for (const encoding of ['base64', 'base64url'] as const)
      forms.push(padded.toString(encoding).slice(start, end))
  }
  return [...new Set(forms)].map((form) => Buffer.from(form))
}

/** Lists the texts that a file contains, plain or encoded. */
export function findTraces(path: string, texts: readonly string[]): string[] {
  const file = readFileSync(path)
  return texts.filter((text) => listForms(text).some((form) => file.includes(form)))
}
