import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { readCertificate, type InspectedPair } from './pair.ts'
import { readJsonFile, writePrivateJson } from './private-file.ts'

/** A certificate that was obtained by ACME, and the directory that it came from. */
export type SavedCertificate = InspectedPair & { directoryUrl: string }

/** Folder of the ACME account and the certificate. */
export const tlsFolder = (dataDir: string) => join(dataDir, 'tls')

const pathIn = (folder: string) => join(folder, 'certificate.json')

export const saveCertificate = (folder: string, { pair, directoryUrl }: SavedCertificate): void =>
  writePrivateJson(pathIn(folder), { directoryUrl, ...pair })

/** Reads the certificate of a folder; undefined if there is none that can be read. */
export function readSaved(folder: string): SavedCertificate | undefined {
  const { directoryUrl, certificate, key } = readJsonFile(pathIn(folder)) ?? {}
  if (typeof directoryUrl !== 'string' || typeof certificate !== 'string' || typeof key !== 'string')
    return undefined
  try {
    return { pair: { certificate, key }, directoryUrl, facts: readCertificate(certificate) }
  } catch {
    return undefined
  }
}

/** Why no certificate could be obtained, and when the server tries again, in milliseconds since the epoch. */
export type SavedFailure = { error: string; nextTry: number }

const failureIn = (folder: string) => join(folder, 'last-failure.json')

/** Keeps the last failure for the doctor; null: there is none any more. */
export function saveFailure(folder: string, failure: SavedFailure | null): void {
  if (failure === null) rmSync(failureIn(folder), { force: true })
  else writePrivateJson(failureIn(folder), failure)
}

/** Reads the last failure of a folder; null if the last attempt succeeded. */
export function readFailure(folder: string): SavedFailure | null {
  const { error, nextTry } = readJsonFile(failureIn(folder)) ?? {}
  return typeof error === 'string' && typeof nextTry === 'number' ? { error, nextTry } : null
}
