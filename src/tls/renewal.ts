import { X509Certificate } from 'node:crypto'
import { hourMs } from '../shared/durations.ts'
import type { RenewalWindow } from './acme.ts'
import { findIssuerKeyId } from './der.ts'
import type { CertificateFacts } from './pair.ts'

/** Names a certificate for the authority that issued it (RFC 9773 §4.1); undefined if it does not name its issuer's key. */
export function certificateId(pem: string): string | undefined {
  const { raw, serialNumber } = new X509Certificate(pem)
  const keyId = findIssuerKeyId(raw)
  if (!keyId) return undefined
  const hex = serialNumber.length % 2 === 0 ? serialNumber : `0${serialNumber}`
  const serial = Buffer.from(/^[89a-f]/i.test(hex) ? `00${hex}` : hex, 'hex')
  return `${Buffer.from(keyId).toString('base64url')}.${serial.toString('base64url')}`
}

/**
 * Computes when to renew: at a random time of the authority's window, or else when a third of the lifetime is left.
 *
 * @param random from 0 to 1
 * @returns milliseconds since the epoch; at least a third of the lifetime, or an hour, after the certificate began, and
 *   before the last sixth, even if the window lies outside
 */
export function renewalTime(
  { notBefore, notAfter }: Pick<CertificateFacts, 'notBefore' | 'notAfter'>,
  window: Pick<RenewalWindow, 'start' | 'end'> | undefined,
  random: number,
): number {
  const lifetime = notAfter - notBefore
  if (!window) return notAfter - lifetime / 3
  const wanted = window.start + random * (window.end - window.start)
  const earliest = notBefore + Math.min(lifetime / 3, hourMs)
  return Math.min(Math.max(wanted, earliest), notAfter - lifetime / 6)
}
