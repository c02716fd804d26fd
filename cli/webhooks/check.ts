import { isRecord } from '../session/profile.ts'
import { formatDuration, formatRemaining } from '../terminal/text.ts'
import { isSignedBy, secretPattern, type SignedMessage } from './signature.ts'

export type Part = 'secret' | 'id' | 'timestamp' | 'body' | 'signature'
export type Check = { part: Part; ok: boolean; message: string }

export type WebhookToCheck = SignedMessage & { secret: string; signature: string }

/**
 * Looks at each part of a delivery by itself. A signature tells only that something is not as it was; what it is, is
 * found by trying what usually goes wrong on the way to a receiver.
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
        message: 'made with this secret over this id, timestamp and body',
      }
    : !format.ok
      ? format
      : secret.ok
        ? explainMismatch(webhook)
        : { part: 'signature' as const, ok: false, message: 'cannot be checked without the right secret' }
  return [secret, checkId(webhook), timestamp, signatureCheck]
}

const checkSecret = (secret: string): Check => ({
  part: 'secret',
  ok: secretPattern.test(secret),
  message: secretPattern.test(secret)
    ? 'of the right form'
    : `${secretFault(secret)}; it is whsec_ and 48 hex characters`,
})

function secretFault(secret: string) {
  if (secret === '') return 'there is none'
  if (secret.trim() !== secret) return 'has spaces around it'
  if (/^ph_(live|test)_/.test(secret)) return 'is another credential of the application'
  if (!secret.startsWith('whsec_')) return 'does not begin with whsec_'
  return secret.length === 54
    ? 'has characters that are not hexadecimal'
    : `has ${secret.length - 6} characters behind whsec_`
}

function checkId({ id, body }: WebhookToCheck): Check {
  const bodyId = readId(body)
  if (id === '') return { part: 'id', ok: false, message: 'there is none' }
  if (bodyId === null || bodyId === id) return { part: 'id', ok: true, message: id }
  return { part: 'id', ok: false, message: `is not that of the body, which is ${bodyId}` }
}

function readId(body: string): string | null {
  try {
    const parsed: unknown = JSON.parse(body)
    return isRecord(parsed) && typeof parsed.id === 'string' ? parsed.id : null
  } catch {
    return null
  }
}

function checkTimestamp(timestamp: string, nowMs: number, toleranceMs: number): Check {
  const fail = (message: string): Check => ({ part: 'timestamp', ok: false, message })
  if (/^\d{13}$/.test(timestamp)) return fail('is in milliseconds; it is in seconds')
  if (!/^\d{1,11}$/.test(timestamp)) return fail('is not a number of seconds since 1970')
  const ageMs = nowMs - Number(timestamp) * 1000
  const toleranceText = `receivers allow ${formatDuration(toleranceMs)}`
  if (ageMs > toleranceMs) return fail(`is too old: signed ${formatRemaining(ageMs)} ago, ${toleranceText}`)
  if (-ageMs > toleranceMs)
    return fail(`is too new: ${formatRemaining(-ageMs)} ahead of this clock, ${toleranceText}`)
  return {
    part: 'timestamp',
    ok: true,
    message: ageMs < 1000 ? 'signed now' : `signed ${formatRemaining(ageMs)} ago`,
  }
}

function checkSignatureFormat(signature: string): Check {
  const fail = (message: string): Check => ({ part: 'signature', ok: false, message })
  if (signature === '') return fail('there is none')
  const versions = signature.split(' ')
  if (versions.some((version) => /^v1,[A-Za-z0-9+/]{43}=$/.test(version)))
    return { part: 'signature', ok: true, message: '' }
  if (/^[0-9a-f]{64}$/i.test(signature)) return fail('is in hexadecimal; it is v1, and base64')
  if (/^[A-Za-z0-9+/]{43}=$/.test(signature)) return fail('has no version; it is v1,… with the comma')
  return fail('is not of the form v1, and 44 characters of base64')
}

/** What was changed, where putting it back makes the signature right. */
function explainMismatch(webhook: WebhookToCheck): Check {
  const { body, id, timestamp, secret, signature } = webhook
  const compact = reformat(body)
  const bodyId = readId(body)
  const suspects: Array<[part: Part, message: string, change: Partial<SignedMessage>]> = [
    ['body', 'has a newline at its end that was not signed', { body: body.replace(/\r?\n$/, '') }],
    ['body', 'has lost the newline at its end', { body: `${body}\n` }],
    ['body', 'has other line ends than what was signed', { body: body.replaceAll('\r\n', '\n') }],
    ['body', 'begins with a byte order mark that was not signed', { body: body.replace(/^\ufeff/, '') }],
    ...(compact === null
      ? []
      : [
          [
            'body',
            'was parsed and written anew: check the bytes as they came',
            { body: compact },
          ] satisfies Suspect,
        ]),
    ...(bodyId === null
      ? []
      : [['id', `is not the one that was signed, ${bodyId}`, { id: bodyId }] satisfies Suspect]),
    ['id', 'has spaces around it', { id: id.trim() }],
    ['timestamp', 'was signed in seconds', { timestamp: timestamp.replace(/^(\d{10})\d{3}$/, '$1') }],
  ]
  for (const [part, message, change] of suspects) {
    if (isSignedBy(secret, { id, timestamp, body, ...change }, signature)) return { part, ok: false, message }
  }
  return {
    part: 'signature',
    ok: false,
    message:
      'does not fit: the body was changed, or the secret is another one (of another application, or rotated)',
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
