import { createHash } from 'node:crypto'

/** A file of a release and its SHA-256 in hexadecimal digits. */
export type Artefact = { name: string; digest: string }

export const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

/** Writes the lines of SHA256SUMS, which `sha256sum --check` reads. */
export const checksums = (artefacts: readonly Artefact[]) =>
  artefacts.map(({ name, digest }) => `${digest}  ${name}\n`).join('')
