import { fault, ok, warning, type Check } from './check.ts'
import { dayMs } from './durations.ts'
import { formatRemaining, formatTimeUntil, localTime, printable } from './human-text.ts'

/** Last failure of the certificate authority, and when it is asked again. */
type Failure = { error: string; nextTry: number }

/** The certificate of a server with HTTPS, as its machine has it. */
export type CertificateInspection =
  | { state: 'none'; failure: Failure | null }
  | { state: 'unreadable'; path: string }
  /** Files that cannot be served, such as a certificate without its key. */
  | { state: 'unfit'; fault: string; remedy: string }
  | {
      state: 'readable'
      facts: { names: string[]; notBefore: number; notAfter: number }
      /** Whether it covers the host of the public URL; null without one. */
      coversPublicUrl: boolean | null
      /** Last failure to renew it; null if it is not obtained by ACME, or the last attempt succeeded. */
      failure: Failure | null
    }

/** A renewal that has failed for so long is a fault; of short-lived certificates, less. */
const remainingMinMs = 10 * dayMs

/** Checks the certificate of HTTPS: its end, and the names that it covers. */
export function certificateChecks(
  { tls, publicUrl }: { tls: { certificate: { kind: string } } | null; publicUrl: string | null },
  certificate: CertificateInspection | null,
  nowMs: number,
): Check[] {
  const name = 'certificate'
  if (tls === null || certificate === null) return []
  const isAcme = tls.certificate.kind === 'acme'
  const failure = 'failure' in certificate ? certificate.failure : null
  const whenAgain = failure && nextTry(failure.nextTry, nowMs)
  if (certificate.state === 'none')
    return [
      failure && whenAgain
        ? warning(name, `none yet, so HTTPS is not served: ${printable(failure.error)}`, whenAgain)
        : warning(
            name,
            'none yet: HTTPS is not served',
            'Start the server; its log says why the certificate authority refuses, such as a port 80 that it cannot reach.',
          ),
    ]
  if (certificate.state === 'unreadable')
    return [fault(name, `${certificate.path} cannot be read`, 'Correct the file or its permissions.')]
  if (certificate.state === 'unfit')
    return [fault(name, certificate.fault.replace(/\.$/, ''), `${certificate.remedy} ${unservedText}`)]
  const { names, notBefore, notAfter } = certificate.facts
  const leftMs = notAfter - nowMs
  const renewal =
    whenAgain ??
    (isAcme
      ? "The server's log says why it was not renewed; systemctl reload otpd tries again at once."
      : 'Renew it, then: systemctl reload otpd')
  const shown = names.join(', ')
  if (leftMs <= 0)
    return [fault(name, `${shown} ended ${localTime(new Date(notAfter).toISOString())}`, renewal)]
  if (notBefore > nowMs)
    return [
      fault(
        name,
        `${shown} is valid from ${localTime(new Date(notBefore).toISOString())} on`,
        isAcme ? checkClock : `${checkClock}. ${unservedText}`,
      ),
    ]
  const checks: Check[] = []
  if (leftMs < Math.min(remainingMinMs, (notAfter - notBefore) / 6))
    checks.push(fault(name, `${shown} ends in ${timeLeft(leftMs)} (${utcTime(notAfter)})`, renewal))
  if (certificate.coversPublicUrl === false)
    checks.push(
      fault(
        name,
        `it is for ${shown}, and clients use ${publicUrl}`,
        'Use a name of the certificate in publicUrl of [server], or get a certificate for that one.',
      ),
    )
  if (checks.length > 0) return checks
  const valid = `${shown}, valid for ${timeLeft(leftMs)}`
  if (!failure) return [ok(name, valid)]
  return [warning(name, `${valid}, could not be renewed: ${printable(failure.error)}`, renewal)]
}

const checkClock = 'Check the clock of this machine: timedatectl'
const unservedText = 'Until then a running server keeps the certificate that it has, and none starts.'

/** Says when the server asks the authority again. A time that has passed means that it does not run. */
const nextTry = (atMs: number, nowMs: number): string =>
  atMs > nowMs
    ? `The server tries again ${formatTimeUntil(new Date(atMs).toISOString(), nowMs)} (${utcTime(atMs)}); at once with: systemctl reload otpd`
    : 'Start the server: it tries again at once.'

const timeLeft = (ms: number) => (ms < 2 * dayMs ? formatRemaining(ms) : `${Math.floor(ms / dayMs)} days`)

/** Formats a time for alerts, which are read later and elsewhere: `2026-11-20 23:24 UTC`. */
const utcTime = (ms: number) => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
