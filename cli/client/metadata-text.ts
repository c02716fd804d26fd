import { printable } from '../terminal/text.ts'

/** Formats the pairs of a request: `order=7, sessionId=ses_…`. */
export const metadataText = (metadata: Readonly<Record<string, string>>): string =>
  Object.entries(metadata)
    .map(([name, value]) => printable(`${name}=${value}`))
    .join(', ')
