import { generateKeyPairSync } from 'node:crypto'
import { startAwsNotify } from './aws-notify-server.ts'
import type { CarrierMessage, CarrierServer } from './carrier-server.ts'
import { startPrelude } from './prelude-server.ts'
import {
  signAsPrelude,
  signAsSns,
  signAsTelnyx,
  signAsVonage,
  type SignedCallback,
} from './signed-callbacks.ts'
import { startTelnyxVerify, verifyProfileId } from './telnyx-verify-server.ts'
import { startTwilioVerify, verifyServiceSid } from './twilio-verify-server.ts'
import { startVonageVerify } from './vonage-verify-server.ts'

export type Report = 'delivered' | 'undelivered' | 'blocked'

type Network = {
  kind: string
  server: CarrierServer
  country: string
  /** Phones of the country, without their last two digits. */
  phones: string
  settings: Record<string, string>
  secrets: Record<string, string>
  /** Failure classes of its refusals; the fraud filter of some reports later. */
  failures: { refuse: string; throttle: string; unauthorized: string }
  blocksAtOnce: boolean
  /** Failure class of a message that it could not deliver. */
  undelivered?: string
  /** Signs a report on a message; undefined if the network does not make it. */
  sign?: (report: Report, message: CarrierMessage, requestId: string) => SignedCallback | undefined
  /** Returns the outcome of a message that otpd reported to the network. */
  heard: (message: CarrierMessage) => string | undefined
  ends: { verified: string; canceled: string | undefined }
}

const telnyxKeys = generateKeyPairSync('ed25519')
const preludeKeys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const snsKeys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = (key: typeof snsKeys.publicKey) => key.export({ type: 'spki', format: 'pem' }).toString()
const receiptTopicArn = 'arn:aws:sns:eu-central-1:123456789012:otp-receipts'
const signatureSecret = 'signature-secret'
const usualFailures = { refuse: 'geo_blocked', throttle: 'throttled', unauthorized: 'auth_failed' }

/**
 * Starts the networks that take the codes of otpd, each for a country of its own.
 *
 * @param now time of the reports that they sign
 */
export function startNetworks(now: () => number): Network[] {
  const nowSeconds = () => Math.floor(now() / 1000)
  const aws = startAwsNotify(pem(snsKeys.publicKey))
  const twilio = startTwilioVerify()
  const telnyx = startTelnyxVerify()
  const prelude = startPrelude()
  const vonage = startVonageVerify()

  return [
    {
      kind: 'aws-notify',
      server: aws,
      country: 'DE',
      phones: '+491512345',
      settings: {
        region: 'eu-central-1',
        accessKeyId: 'AKIDEXAMPLE0123456',
        notifyConfigurationId: 'nc-1',
        templates: 'en = notify-code-verification-english-001',
        configurationSet: 'otp',
        receiptTopicArn,
      },
      secrets: { secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' },
      blocksAtOnce: false,
      undelivered: 'unreachable',
      failures: usualFailures,
      sign(report, { messageId }, requestId) {
        const types = {
          delivered: 'TEXT_DELIVERED',
          undelivered: 'TEXT_CARRIER_UNREACHABLE',
          blocked: 'TEXT_PROTECT_BLOCKED',
        }
        const event = { eventType: types[report], messageId, context: { requestId } }
        const envelope = {
          Type: 'Notification',
          MessageId: crypto.randomUUID(),
          TopicArn: receiptTopicArn,
          Message: JSON.stringify(event),
          Timestamp: new Date(now()).toISOString(),
          SignatureVersion: '2',
          SigningCertURL: `${aws.url}/SimpleNotificationService-1.pem`,
        }
        return signAsSns(envelope, snsKeys.privateKey)
      },
      heard: ({ messageId }) => aws.feedback.get(messageId),
      ends: { verified: 'RECEIVED', canceled: 'FAILED' },
    },
    {
      kind: 'twilio-verify',
      server: twilio,
      country: 'NL',
      phones: '+316123456',
      settings: { accountSid: `AC${'0a'.repeat(16)}`, serviceSid: verifyServiceSid },
      secrets: { authToken: 'token' },
      blocksAtOnce: true,
      failures: usualFailures,
      heard: ({ messageId }) => twilio.verifications.get(messageId)?.status,
      ends: { verified: 'approved', canceled: 'canceled' },
    },
    {
      kind: 'telnyx-verify',
      server: telnyx,
      country: 'FR',
      phones: '+336123456',
      settings: {
        verifyProfileId,
        publicKey: telnyxKeys.publicKey
          .export({ type: 'spki', format: 'der' })
          .subarray(-32)
          .toString('base64'),
      },
      secrets: { apiKey: 'KEY123' },
      blocksAtOnce: true,
      // Telnyx does not say why.
      undelivered: 'unknown',
      failures: usualFailures,
      sign(report, { messageId }) {
        if (report === 'blocked') return undefined
        const type = report === 'delivered' ? 'verify.delivered' : 'verify.failed'
        const delivery_status = report === 'delivered' ? 'delivered' : 'delivery_failed'
        const payload = { id: messageId, delivery_status, type: 'sms' }
        const body = JSON.stringify({ data: { event_type: type, payload, record_type: 'event' } })
        return signAsTelnyx(body, telnyxKeys.privateKey, String(nowSeconds()))
      },
      heard: ({ messageId }) => telnyx.outcomes.get(messageId),
      ends: { verified: 'accepted', canceled: 'rejected' },
    },
    {
      kind: 'prelude',
      server: prelude,
      country: 'ES',
      phones: '+346123456',
      settings: { webhookPublicKey: pem(preludeKeys.publicKey) },
      secrets: { apiToken: 'sk_1' },
      blocksAtOnce: true,
      failures: usualFailures,
      sign(report, { messageId }, requestId) {
        // Prelude tries its other routes itself: `undeliverable` asks for no other provider.
        if (report !== 'delivered') return undefined
        const payload = {
          status: report,
          verification_id: messageId,
          metadata: { correlation_id: requestId },
        }
        return signAsPrelude(
          JSON.stringify({ type: 'verify.delivery_status', payload }),
          preludeKeys.privateKey,
        )
      },
      // A check that succeeded ends the verification; of other ends it does not hear.
      heard: ({ to }) => (prelude.pending.has(to) ? undefined : 'success'),
      ends: { verified: 'success', canceled: undefined },
    },
    {
      kind: 'vonage-verify',
      server: vonage,
      country: 'GB',
      phones: '+4479123456',
      settings: { apiKey: 'abcd1234', brand: 'Acme' },
      secrets: { apiSecret: 'secret', signatureSecret },
      blocksAtOnce: false,
      undelivered: 'unreachable',
      failures: { refuse: 'no_credit', throttle: 'throttled', unauthorized: 'auth_failed' },
      sign(report, { messageId }, requestId) {
        // `completed` says that the code was entered, which otpd knows: there is no report of a delivery.
        if (report === 'delivered') return undefined
        const status = report === 'blocked' ? 'blocked' : 'failed'
        const body = { request_id: messageId, client_ref: requestId, status, type: 'summary', workflow: [] }
        return signAsVonage(JSON.stringify(body), signatureSecret, nowSeconds())
      },
      heard: ({ messageId }) => vonage.requests.get(messageId)?.status,
      ends: { verified: 'completed', canceled: 'canceled' },
    },
  ]
}
