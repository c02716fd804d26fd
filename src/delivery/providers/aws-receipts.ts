import { createPublicKey, verify, type KeyObject } from 'node:crypto'
import { awsHost } from './aws.ts'
import { forged, noReceipt, unreadable, unverifiable } from '../kit/callbacks.ts'
import type { ProviderNeeds } from '../kit/provider-kinds.ts'
import { parseJson, textAt } from '../kit/json.ts'
import type { Callback, CallbackResult } from '../kit/provider.ts'
import { hourMs } from '../../shared/durations.ts'

const maxAgeMs = hourMs
const fetchTimeoutMs = 8_000
const certificatesMax = 8

type SnsTopicSettings = {
  /** The only accepted topic: SNS signs messages for every AWS account, so a signature alone proves nothing. */
  receiptTopicArn: string
  /** A custom endpoint; certificates are accepted from it too. */
  baseUrl: string | undefined
}

/**
 * Reads what an SNS topic posts to the callback URL. Verifies the signature first
 * (https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html), and confirms the
 * subscription when SNS asks for it. Returns the text of a notification, or the callback's result if it is
 * not a notification.
 */
export function createSnsNotificationReader(
  { receiptTopicArn, baseUrl }: SnsTopicSettings,
  { http, world }: Pick<ProviderNeeds, 'http' | 'world'>,
): (callback: Callback, nowMs: number) => Promise<{ message: string } | CallbackResult> {
  const [, , , topicRegion = ''] = receiptTopicArn.split(':')
  const origins = [
    `https://${awsHost('sns', topicRegion)}`,
    ...(baseUrl === undefined ? [] : [new URL(baseUrl).origin]),
  ]
  const keys = new Map<string, KeyObject>()

  const isTrusted = (url: string) => URL.canParse(url) && origins.includes(new URL(url).origin)
  const fetchText = async (url: string) => {
    const result = await http.request({ method: 'GET', url }, world.timers.timeoutSignal(fetchTimeoutMs))
    return result.kind === 'response' && result.status === 200 ? result.text : undefined
  }

  const findKey = async (url: string): Promise<KeyObject | undefined> => {
    const cached = keys.get(url)
    if (cached) return cached
    const key = readKey(await fetchText(url))
    if (key && keys.size < certificatesMax) keys.set(url, key)
    return key
  }

  return async ({ body }, nowMs) => {
    const envelope = parseJson(body)
    const type = textAt(envelope, 'Type')
    const fieldNames = type === undefined ? undefined : signedFieldNames.get(type)
    const message = textAt(envelope, 'Message')
    if (fieldNames === undefined || message === undefined) return unreadable
    if (textAt(envelope, 'TopicArn') !== receiptTopicArn) return forged
    const age = nowMs - Date.parse(textAt(envelope, 'Timestamp') ?? '')
    if (!(Math.abs(age) <= maxAgeMs)) return forged

    const certificateUrl = textAt(envelope, 'SigningCertURL') ?? ''
    if (!isTrusted(certificateUrl) || !certificateUrl.endsWith('.pem')) return forged
    const key = await findKey(certificateUrl)
    if (!key) return unverifiable
    if (!isSigned(envelope, fieldNames, key)) return forged

    if (type === 'Notification') return { message }
    const confirmUrl = textAt(envelope, 'SubscribeURL') ?? ''
    if (type !== 'SubscriptionConfirmation' || !isTrusted(confirmUrl)) return noReceipt
    return (await fetchText(confirmUrl)) === undefined ? unverifiable : noReceipt
  }
}

const confirmationFields = ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
/** Fields that the signature of each type covers, in signing order. */
const signedFieldNames: ReadonlyMap<string, readonly string[]> = new Map([
  ['Notification', ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']],
  ['SubscriptionConfirmation', confirmationFields],
  ['UnsubscribeConfirmation', confirmationFields],
])
const algorithms: ReadonlyMap<string, string> = new Map([
  ['1', 'RSA-SHA1'],
  ['2', 'RSA-SHA256'],
])

function isSigned(envelope: unknown, fieldNames: readonly string[], key: KeyObject): boolean {
  const signedLines = fieldNames.flatMap((fieldName) => {
    const value = textAt(envelope, fieldName)
    return value === undefined ? [] : `${fieldName}\n${value}\n`
  })
  const algorithm = algorithms.get(textAt(envelope, 'SignatureVersion') ?? '')
  if (algorithm === undefined) return false
  const signature = Buffer.from(textAt(envelope, 'Signature') ?? '', 'base64')
  return verify(algorithm, Buffer.from(signedLines.join('')), key, signature)
}

function readKey(pem: string | undefined): KeyObject | undefined {
  if (pem === undefined) return undefined
  try {
    const key = createPublicKey(pem)
    // As SNS has it: with a key of another kind, `verify` throws.
    return key.asymmetricKeyType === 'rsa' ? key : undefined
  } catch {
    return undefined
  }
}
