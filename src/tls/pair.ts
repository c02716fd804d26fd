import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { dayMs } from '../shared/durations.ts'

/** A certificate with its chain, and its private key, in PEM. The key is never printed or logged. */
export type CertificatePair = { certificate: string; key: string }

/** Names and lifetime of a certificate. */
export type CertificateFacts = {
  /** Names and addresses of the subject. */
  names: string[]
  /** Milliseconds since the epoch. */
  notBefore: number
  notAfter: number
}

type PemFile = { path: string; bytes: Uint8Array }

/** The file at fault, what is wrong with it and how to fix it. */
export type PairFault = { path: string; fault: string; remedy: string }

export type InspectedPair = { pair: CertificatePair; facts: CertificateFacts }

/** A server starts with a certificate that ended so recently: an outage of its renewal should not become one of otpd. */
export const endedGraceMs = 7 * dayMs

/**
 * Checks that a certificate and a key can be served together: both are PEM, belong to each other, and the certificate is valid.
 *
 * @param options.graceMs how long ago the certificate may have ended
 */
export function inspectPair(
  certFile: PemFile,
  keyFile: PemFile,
  { nowMs, graceMs = 0 }: { nowMs: number; graceMs?: number },
): InspectedPair | PairFault {
  const inspected = readPair(certFile, keyFile)
  if ('fault' in inspected) return inspected
  const { facts } = inspected
  if (nowMs < facts.notBefore)
    return {
      path: certFile.path,
      fault: `The certificate in ${certFile.path} is valid from ${day(facts.notBefore)} on.`,
      remedy: 'Check the clock of this machine: timedatectl',
    }
  if (nowMs > facts.notAfter + graceMs)
    return {
      path: certFile.path,
      fault: endedText(certFile.path, facts),
      remedy: 'Renew it: with certbot, for example: certbot renew',
    }
  return inspected
}

/** Reads a certificate and its key. Does not check when it is valid. */
export function readPair(certFile: PemFile, keyFile: PemFile): InspectedPair | PairFault {
  const certificate = new TextDecoder().decode(certFile.bytes)
  const key = new TextDecoder().decode(keyFile.bytes)
  const found = findCertificate(certificate, certFile.path)
  if ('fault' in found) return found
  const keyFault = findKeyFault(key, keyFile.path)
  if (keyFault) return keyFault
  const { x509 } = found
  if (!x509.checkPrivateKey(createPrivateKey(key)))
    return {
      path: keyFile.path,
      fault: `The key in ${keyFile.path} does not belong to the certificate in ${certFile.path}.`,
      remedy: 'Name a certificate and its own key. The certificate of the server comes first in its file.',
    }
  return { pair: { certificate, key }, facts: readFacts(x509) }
}

/** Says when a certificate ended. */
export const endedText = (path: string, { notAfter }: CertificateFacts) =>
  `The certificate in ${path} ended on ${day(notAfter)}.`

/** Reads the first certificate of a text in PEM. @throws Error it has none */
export const readCertificate = (pem: string): CertificateFacts => readFacts(new X509Certificate(pem))

/** Tells whether a certificate is valid for a host, a name or an address, also by a wildcard. */
export function coversHost(pem: string, host: string): boolean {
  const x509 = new X509Certificate(pem)
  const address = host.replace(/^\[(.*)\]$/, '$1')
  try {
    return (isIP(address) === 0 ? x509.checkHost(address) : x509.checkIP(address)) !== undefined
  } catch {
    // Not a name, such as an empty one.
    return false
  }
}

const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)

function readFacts(x509: X509Certificate): CertificateFacts {
  const names = [...(x509.subjectAltName ?? '').matchAll(/(?:DNS|IP Address):([^,\s]+)/g)]
  return {
    names: names.map(([, name = '']) => name),
    notBefore: Date.parse(x509.validFrom),
    notAfter: Date.parse(x509.validTo),
  }
}

function findCertificate(text: string, path: string): { x509: X509Certificate } | PairFault {
  if (!text.includes('-----BEGIN CERTIFICATE-----')) {
    const isDer = !text.includes('-----BEGIN ') && text.startsWith('0')
    return isDer
      ? derFault(path, 'certificate', 'openssl x509 -inform DER')
      : {
          path,
          fault: `${path} has no certificate.`,
          remedy: 'Name a file in PEM that begins with -----BEGIN CERTIFICATE-----, with the whole chain.',
        }
  }
  try {
    return { x509: new X509Certificate(text) }
  } catch {
    return {
      path,
      fault: `The certificate in ${path} cannot be read.`,
      remedy: `Look at it: openssl x509 -noout -text -in ${path}`,
    }
  }
}

function findKeyFault(text: string, path: string): PairFault | undefined {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(text))
    return {
      path,
      fault: `The key in ${path} is encrypted.`,
      remedy: `Decrypt it: openssl pkey -in ${path} -out NEW.pem`,
    }
  if (!/-----BEGIN (\w+ )?PRIVATE KEY-----/.test(text)) {
    const isDer = !text.includes('-----BEGIN ') && text.startsWith('0')
    return isDer
      ? derFault(path, 'key', 'openssl pkey -inform DER')
      : {
          path,
          fault: `${path} has no private key.`,
          remedy: 'Name a file in PEM that begins with -----BEGIN PRIVATE KEY-----.',
        }
  }
  try {
    createPrivateKey(text)
    return undefined
  } catch {
    return {
      path,
      fault: `The key in ${path} cannot be read.`,
      remedy: `Look at it: openssl pkey -noout -in ${path}`,
    }
  }
}

const derFault = (path: string, what: string, command: string): PairFault => ({
  path,
  fault: `The ${what} in ${path} is in DER.`,
  remedy: `Convert it to PEM: ${command} -in ${path} -out NEW.pem`,
})
