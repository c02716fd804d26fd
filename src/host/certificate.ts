import { isIP } from 'node:net'
import type { Config } from '../config/config.ts'
import type { CertificateInspection } from '../shared/certificate-checks.ts'
import { readRegularFile } from '../shared/regular-file.ts'
import { coversHost, readCertificate } from '../tls/pair.ts'
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
    try {
      pem = readRegularFile(certificate.certFile).toString()
    } catch {
      return { state: 'unreadable', path: certificate.certFile }
    }
  }
  try {
    const coversPublicUrl = publicUrl === null ? null : coversHost(pem, new URL(publicUrl).hostname)
    return { state: 'readable', facts: readCertificate(pem), coversPublicUrl, failure }
  } catch {
    return { state: 'unreadable', path: certificate.kind === 'files' ? certificate.certFile : 'its folder' }
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
