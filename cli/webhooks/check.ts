import { signWebhook, type SignedMessage } from '../../src/shared/webhook-signature.ts'
import { isRecord, parseJson } from '../../src/shared/json.ts'
import { formatDuration, formatRemaining } from '../terminal/text.ts'

type Part = 'secret' | 'id' | 'timestamp' | 'body' | 'signature'
export type Check = { part: Part; ok: boolean; message: string }

type WebhookToCheck = SignedMessage & { secret: string; signature: string }

/**
 * Checks each part of a delivery by itself. A signature only shows that something was changed; to find out what, the
 * usual accidents on the way to a receiver are tried in turn.
 */
export function checkWebhook(
  webhook: WebhookToCheck,
  { nowMs, toleranceMs }: { nowMs: number; toleranceMs: number },
): Check[] {
  const secret = checkSecret(webhook.secret)
  const timestamp = checkTimestamp(webhook.timestamp, nowMs, toleranceMs)
  const format = checkSignatureFormat(webhook.signature)
  const isSigned = secret.ok && format.ok && isSignedBy(webhook.secret, webhook, webhook.signature)
  const signatureCheck = isSigned
    ? {
        part: 'signature' as const,
        ok: true,
        message: 'matches this secret, id, timestamp and body',
      }
    : !format.ok
      ? format
      : secret.ok
        ? explainMismatch(webhook)
        : { part: 'signature' as const, ok: false, message: 'cannot be checked without a valid secret' }
  return [secret, checkId(webhook), timestamp, signatureCheck]
}

const secretPattern = /^whsec_[0-9a-f]{48}$/

const checkSecret = (secret: string): Check => ({
  part: 'secret',
  ok: secretPattern.test(secret),
  message: secretPattern.test(secret)
    ? 'has the right format'
    : `${secretFault(secret)}; the format is whsec_ and 48 hex characters`,
})

function secretFault(secret: string) {
  if (secret === '') return 'is missing'
  if (secret.trim() !== secret) return 'has spaces around it'
  if (/^ph_(live|test)_/.test(secret)) return 'is a different credential of the application'
  if (!secret.startsWith('whsec_')) return 'does not begin with whsec_'
  return secret.length === 54
    ? 'has characters that are not hexadecimal'
    : `has ${secret.length - 6} characters after whsec_`
}

function checkId({ id, body }: WebhookToCheck): Check {
  const bodyId = readId(body)
  if (id === '') return { part: 'id', ok: false, message: 'is missing' }
  if (bodyId === null || bodyId === id) return { part: 'id', ok: true, message: id }
  return { part: 'id', ok: false, message: `differs from the id in the body, ${bodyId}` }
}

function readId(body: string): string | null {
  const parsed = parseJson(body)
  return isRecord(parsed) && typeof parsed.id === 'string' ? parsed.id : null
}

function checkTimestamp(timestamp: string, nowMs: number, toleranceMs: number): Check {
  const fail = (message: string): Check => ({ part: 'timestamp', ok: false, message })
  if (/^\d{13}$/.test(timestamp)) return fail('is in milliseconds; it must be in seconds')
  if (!/^\d{1,11}$/.test(timestamp)) return fail('is not a number of seconds since 1970')
  const ageMs = nowMs - Number(timestamp) * 1000
  const toleranceText = `receivers allow ${formatDuration(toleranceMs)}`
  if (ageMs > toleranceMs) return fail(`is too old: signed ${formatRemaining(ageMs)} ago, ${toleranceText}`)
  if (-ageMs > toleranceMs)
    return fail(`is too new: ${formatRemaining(-ageMs)} ahead of this clock, ${toleranceText}`)
  return {
    part: 'timestamp',
    ok: true,
    message: ageMs < 1000 ? 'signed just now' : `signed ${formatRemaining(ageMs)} ago`,
  }
}

function checkSignatureFormat(signature: string): Check {
  const fail = (message: string): Check => ({ part: 'signature', ok: false, message })
  if (signature === '') return fail('is missing')
  const versions = signature.split(' ')
  if (versions.some((version) => /^v1,[A-Za-z0-9+/]{43}=$/.test(version)))
    return { part: 'signature', ok: true, message: '' }
  if (/^[0-9a-f]{64}$/i.test(signature)) return fail('is hexadecimal; it must be v1, and base64')
  if (/^[A-Za-z0-9+/]{43}=$/.test(signature)) return fail('has no version; it must begin with v1,')
  return fail('has the wrong format; it must be v1, and 44 characters of base64')
}

/** Finds the part that was changed: undoing one of the usual changes makes the signature match. */
function explainMismatch(webhook: WebhookToCheck): Check {
  const { body, id, timestamp, secret, signature } = webhook
  const compact = reformat(body)
  const bodyId = readId(body)
  const suspects: Array<[part: Part, message: string, change: Partial<SignedMessage>]> = [
    ['body', 'ends with a newline that was not signed', { body: body.replace(/\r?\n$/, '') }],
    ['body', 'has lost its final newline', { body: `${body}\n` }],
    ['body', 'has different line endings than the signed body', { body: body.replaceAll('\r\n', '\n') }],
    ['body', 'begins with a byte order mark that was not signed', { body: body.replace(/^\ufeff/, '') }],
    ...(compact === null
      ? []
      : [
          [
            'body',
            'was parsed and serialized again; verify the raw bytes',
            { body: compact },
          ] satisfies Suspect,
        ]),
    ...(bodyId === null
      ? []
      : [['id', `is not the signed one, ${bodyId}`, { id: bodyId }] satisfies Suspect]),
    ['id', 'has spaces around it', { id: id.trim() }],
    ['timestamp', 'was signed in seconds', { timestamp: timestamp.replace(/^(\d{10})\d{3}$/, '$1') }],
  ]
  for (const [part, message, change] of suspects) {
    if (isSignedBy(secret, { id, timestamp, body, ...change }, signature)) return { part, ok: false, message }
  }
  return {
    part: 'signature',
    ok: false,
    message: 'is invalid: the body was changed, or the secret is wrong (of another application, or rotated)',
  }
}

type Suspect = [part: Part, message: string, change: Partial<SignedMessage>]

function reformat(body: string): string | null {
  try {
    return JSON.stringify(JSON.parse(body))
  } catch {
    return null
  }
}

/**
 * Whether one of the signatures is valid. The caller has the secret, so the time of a comparison tells nothing.
 *
 * @param signatures header value: one or more signatures, separated by spaces
 */
const isSignedBy = (secret: string, message: SignedMessage, signatures: string): boolean =>
  signatures.split(' ').includes(signWebhook(secret, message))
