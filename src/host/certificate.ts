import { readFileSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { coversHost, readCertificate, type CertificateFacts } from '../tls/pair.ts'
import { readSaved, tlsFolder } from '../tls/saved.ts'

export type CertificateInspection =
  | { state: 'none' }
  | { state: 'unreadable'; path: string }
  | {
      state: 'readable'
      facts: CertificateFacts
      /** Whether it covers the host of the public URL; null without one. */
      coversPublicUrl: boolean | null
    }

/** Reads the certificate that a server of this configuration has; null without HTTPS. */
export function inspectCertificate({
  tls,
  dataDir,
  publicUrl,
}: Pick<Config, 'tls' | 'dataDir' | 'publicUrl'>): CertificateInspection | null {
  if (tls === null) return null
  const { certificate } = tls
  let pem: string | undefined
  if (certificate.kind === 'acme') {
    pem = dataDir === null ? undefined : readSaved(tlsFolder(dataDir))?.pair.certificate
    if (pem === undefined) return { state: 'none' }
  } else {
    try {
      pem = readFileSync(certificate.certFile, 'utf8')
    } catch {
      return { state: 'unreadable', path: certificate.certFile }
    }
  }
  try {
    const coversPublicUrl = publicUrl === null ? null : coversHost(pem, new URL(publicUrl).hostname)
    return { state: 'readable', facts: readCertificate(pem), coversPublicUrl }
  } catch {
    return { state: 'unreadable', path: certificate.kind === 'files' ? certificate.certFile : 'its folder' }
  }
}
