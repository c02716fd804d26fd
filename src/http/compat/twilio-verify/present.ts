import type { ApplicationView } from '../../../domain/model/application.ts'
import { codeDigits } from '../../../domain/model/code.ts'
import { parseHistory } from '../../../domain/model/request-history.ts'
import {
  isExpired,
  type Channel,
  type CompatRecord,
  type ListedRequest,
  type OtpRequest,
} from '../../../domain/model/request.ts'
import type { SendResult } from '../../../domain/otp/send-result.ts'
import { accountSid, attemptSid, safeNumberSid, serviceSid, verificationSid } from './resources.ts'

type Status = 'pending' | 'approved' | 'canceled' | 'max_attempts_reached' | 'failed'

/** Facts of a request that a verification and a check show. */
type Verification = {
  id: string
  appId: string
  phone: string
  status: Status
  messages: CompatRecord['messages']
  createdAt: number
  updatedAt: number
}

/** Without milliseconds: with them Twilio's library for Python gives text instead of a time. */
export const formatSeconds = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/** Twilio's name of each channel. It has none for Telegram. */
export const channelNames: Record<Channel, string> = {
  sms: 'sms',
  whatsapp: 'whatsapp',
  voice: 'call',
  telegram: 'sms',
  rcs: 'rcs',
  silent: 'sna',
}

/** A verification as it was when its newest message was sent. */
export function sentVerification(appId: string, { requestId, phone, compat }: SendResult): Verification {
  if (!compat) throw new Error('this request was not made by the façade')
  const { messages, createdAt } = compat
  const updatedAt = messages.at(-1)?.sentAt ?? createdAt
  return { id: requestId, appId, phone, status: 'pending', messages, createdAt, updatedAt }
}

/** A request as a verification. @param status overrides that of the request */
export const toVerification = (request: OtpRequest, status: Status): Verification => ({
  id: request.id,
  appId: request.appId,
  phone: request.phone,
  status,
  messages: messagesOf(request),
  createdAt: request.createdAt,
  updatedAt: request.updatedAt,
})

/** Messages of a request, oldest first. */
export const messagesOf = (request: ListedRequest): CompatRecord['messages'] =>
  request.compat?.messages ?? historyMessages(request)

/** Messages of a request that the API made. Their channels are not kept. */
const historyMessages = (request: ListedRequest): CompatRecord['messages'] =>
  parseHistory(request).flatMap((entry) =>
    entry.type === 'otp.sent' ? [{ channel: request.channel, sentAt: entry.at }] : [],
  )

/** Status of a request that can be read; undefined once it is approved or expired, when Twilio has it no more. */
export function readableStatus(request: OtpRequest, now: number): Status | undefined {
  switch (request.status) {
    case 'pending':
      return isExpired(request, now) ? undefined : 'pending'
    case 'canceled':
      return 'canceled'
    case 'failed':
      return request.failureReason === 'max_attempts' ? 'max_attempts_reached' : 'failed'
    default:
      return undefined
  }
}

/** Fields that a verification and a check have. */
function presentBase({ id, appId, phone, status, messages, createdAt, updatedAt }: Verification) {
  return {
    sid: verificationSid(id),
    service_sid: serviceSid(appId),
    account_sid: accountSid(appId),
    to: phone,
    channel: channelNames[messages.at(-1)?.channel ?? 'sms'],
    status,
    valid: status === 'approved',
    amount: null,
    payee: null,
    date_created: formatSeconds(createdAt),
    date_updated: formatSeconds(updatedAt),
  }
}

export const presentCheck = (verification: Verification) => ({
  ...presentBase(verification),
  sna_attempts_error_codes: [],
})

/** @param baseUrl public URL of this server */
export const presentVerification = (verification: Verification, baseUrl: string) => ({
  ...presentBase(verification),
  lookup: {},
  send_code_attempts: verification.messages.map(({ channel, sentAt }, number) => ({
    time: formatSeconds(sentAt),
    channel: channelNames[channel].toUpperCase(),
    attempt_sid: attemptSid(verification.id, number),
  })),
  sna: null,
  url: `${serviceUrl(verification.appId, baseUrl)}/Verifications/${verificationSid(verification.id)}`,
})

const serviceUrl = (appId: string, baseUrl: string) => `${baseUrl}/v2/Services/${serviceSid(appId)}`

/** An application as a service: what otpd has no setting for is off or null. */
export function presentService({ id, name, createdAt, updatedAt }: ApplicationView, baseUrl: string) {
  const url = serviceUrl(id, baseUrl)
  return {
    sid: serviceSid(id),
    account_sid: accountSid(id),
    friendly_name: name,
    code_length: codeDigits,
    lookup_enabled: false,
    psd2_enabled: false,
    skip_sms_to_landlines: false,
    dtmf_input_required: false,
    do_not_share_warning_enabled: false,
    custom_code_enabled: false,
    verify_event_subscription_enabled: false,
    tts_name: null,
    default_template_sid: null,
    push: { include_date: false, apn_credential_sid: null, fcm_credential_sid: null },
    totp: { issuer: null, time_step: null, code_length: null, skew: null },
    whatsapp: { msg_service_sid: null, from: null },
    passkeys: {
      relying_party: { id: null, name: null, origins: null },
      authenticator_attachment: null,
      discoverable_credentials: null,
      user_verification: null,
    },
    date_created: formatSeconds(createdAt),
    date_updated: formatSeconds(updatedAt),
    url,
    links: { verifications: `${url}/Verifications`, verification_checks: `${url}/VerificationCheck` },
  }
}

/** A page of the list of services, which has one. */
export function presentServices(
  application: ApplicationView,
  { page, pageSize }: { page: number; pageSize: number },
  baseUrl: string,
) {
  const pageUrl = (number: number) => `${baseUrl}/v2/Services?PageSize=${pageSize}&Page=${number}`
  return {
    services: page === 0 ? [presentService(application, baseUrl)] : [],
    meta: {
      page,
      page_size: pageSize,
      first_page_url: pageUrl(0),
      previous_page_url: page === 0 ? null : pageUrl(page - 1),
      next_page_url: null,
      url: pageUrl(page),
      key: 'services',
    },
  }
}

/** A number of the safe list. @param id the rule that allows it, or the application if the configuration does */
export const presentSafeNumber = (id: string, phone: string, baseUrl: string) => ({
  sid: safeNumberSid(id),
  phone_number: phone,
  url: `${baseUrl}/v2/SafeList/Numbers/${encodeURIComponent(phone)}`,
})
