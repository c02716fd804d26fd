import { isIP } from 'node:net'
import type { Config } from '../config/config.ts'
import type { CertificateInspection } from '../shared/certificate-checks.ts'
import { readRegularFile } from '../shared/regular-file.ts'
import { coversHost, readCertificate, readPair, type CertificatePair } from '../tls/pair.ts'
import { readFailure, readSaved, tlsFolder, type SavedFailure } from '../tls/saved.ts'

/** Reads the certificate that a server of this configuration has; null without HTTPS. */
export function inspectCertificate({
  tls,
  dataDir,
  publicUrl,
}: Pick<Config, 'tls' | 'dataDir' | 'publicUrl'>): CertificateInspection | null {
  if (tls === null) return null
  const { certificate } = tls
  let pem: string | undefined
  let failure: SavedFailure | null = null
  if (certificate.kind === 'acme') {
    const folder = dataDir === null ? null : tlsFolder(dataDir)
    failure = folder === null ? null : readFailure(folder)
    pem = folder === null ? undefined : readSaved(folder)?.pair.certificate
    if (pem === undefined) return { state: 'none', failure }
  } else {
    const files = readFiles(certificate)
    if ('state' in files) return files
    pem = files.certificate
  }
  try {
    const coversPublicUrl = publicUrl === null ? null : coversHost(pem, new URL(publicUrl).hostname)
    return { state: 'readable', facts: readCertificate(pem), coversPublicUrl, failure }
  } catch {
    return { state: 'unreadable', path: 'its folder' }
  }
}

type CertificateFiles = { certFile: string; keyFile: string }

/** Reads the files of a certificate. A server that has an older one serves them only if they belong together. */
function readFiles({ certFile, keyFile }: CertificateFiles): CertificatePair | CertificateInspection {
  const [certificate, key] = [tryRead(certFile), tryRead(keyFile)]
  if (!certificate) return { state: 'unreadable', path: certFile }
  if (!key) return { state: 'unreadable', path: keyFile }
  const found = readPair(certificate, key)
  return 'fault' in found ? { state: 'unfit', ...found } : found.pair
}

function tryRead(path: string) {
  try {
    return { path, bytes: readRegularFile(path) }
  } catch {
    return undefined
  }
}

/**
 * Replaces the host of a server's URL by one that its certificate is for, where that has a name; clients refuse the address that
 * the server listens on.
 */
export function certifiedUrl(url: string, config: Parameters<typeof inspectCertificate>[0]): string {
  const certificate = inspectCertificate(config)
  if (certificate?.state !== 'readable') return url
  const { names } = certificate.facts
  const { hostname } = new URL(url)
  const name = names.find((candidate) => !candidate.includes('*'))
  if (name === undefined || names.includes(hostname.replace(/^\[(.*)\]$/, '$1'))) return url
  return url.replace(`//${hostname}`, `//${isIP(name) === 6 ? `[${name}]` : name}`)
}
