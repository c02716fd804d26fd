import { Type } from '@sinclair/typebox'
import type { ApplicationService } from '../../../domain/apps/applications.ts'
import type { CallingApplication } from '../../../domain/model/application.ts'
import type { Clock } from '../../../domain/model/clock.ts'
import { invalidField, notFound, ServiceError } from '../../../domain/model/errors.ts'
import { tryParsePhone } from '../../../domain/model/phone.ts'
import { attachRate, isRejected } from '../../../domain/model/rejected.ts'
import type { Channel, OtpRequest } from '../../../domain/model/request.ts'
import type { OtpService } from '../../../domain/otp/otp.ts'
import type { ChannelChoice } from '../../../domain/otp/new-message.ts'
import type { OtpTarget } from '../../../domain/otp/target.ts'
import type { ReadIdempotency } from '../../idempotency.ts'
import { sendFields } from '../../field-schemas.ts'
import { deferRateHeaders, setRateHeaders, setResultHeaders } from '../../rate-headers.ts'
import { parseStrictJson } from '../../json-body.ts'
import { checkField, invalidParameter, readFields, type Fields } from './fields.ts'
import {
  presentCheck,
  presentVerification,
  readableStatus,
  sentVerification,
  toVerification,
} from './present.ts'
import { readVerificationSid } from './resources.ts'

/** An authenticated call. */
export type Call = {
  application: CallingApplication
  request: Request
  headers: Record<string, string | undefined>
  set: { status?: number | string; headers: Record<string, string | number> }
}

const facade = 'twilio-verify'

/** Fields of a create that change nothing a person would notice, and are named in the answer's header `Otpd-Ignored`. */
const ignoredFields = [
  'RiskCheck',
  'RateLimits',
  'ChannelConfiguration',
  'TemplateSid',
  'SendDigits',
] as const

/** Fields of a create. The others that Twilio has are refused. */
const createFields = [
  ...ignoredFields,
  'CustomFriendlyName',
  'To',
  'Channel',
  'Locale',
  'DeviceIp',
  'Tags',
  'AppHash',
  'EnableSnaClientToken',
  'CustomCode',
] as const

const codeSchema = Type.String({ pattern: '^[0-9A-Za-z]{4,10}$' })

/** The calls of verifications: create, fetch, update, check. */
export function createVerificationCalls(services: {
  applications: Pick<ApplicationService, 'get'>
  clock: Clock
  otp: OtpService
  readIdempotency: ReadIdempotency
  publicUrl: () => string
}) {
  const { applications, clock, otp, publicUrl } = services

  async function create(call: Call): Promise<object> {
    const { application, request, headers, set } = call
    deferRateHeaders(request, () => otp.peekRate(application, 'send'))
    const fields = await readFields(request, createFields)
    const { CustomCode, To: phone, AppHash } = fields
    if (CustomCode !== undefined)
      throw new ServiceError('FORBIDDEN', 'Codes are derived.', { reason: 'CUSTOM_CODE' })
    if (phone === undefined) throw invalidParameter('To')
    const input = { phone, ...readChannel(fields.Channel), ...readOptions(fields) }
    const { CustomFriendlyName } = fields
    if (AppHash !== undefined || CustomFriendlyName !== undefined) {
      const { androidAppHash, name } = await applications.get({ id: application.developerId }, application.id)
      if (AppHash !== undefined && AppHash !== androidAppHash) throw invalidParameter('AppHash')
      // Messages name the application.
      if (CustomFriendlyName !== undefined && CustomFriendlyName !== name)
        throw invalidParameter('CustomFriendlyName')
    }
    const ignored = ignoredFields.filter((name) => fields[name] !== undefined)
    if (ignored.length > 0) set.headers['otpd-ignored'] = ignored.join(', ')
    const scope = services.readIdempotency(headers, application.id, 'POST /v2/Services/Verifications', fields)
    const sent = await otp.start(facade, application, input, scope)
    await setResultHeaders(request, set.headers, sent)
    set.status = 201
    return presentVerification(sentVerification(application.id, sent), publicUrl())
  }

  /** Finds a verification by its sid, or the newest that the façade made for a phone. @throws NOT_FOUND */
  async function find({ application }: Call, item: string): Promise<OtpRequest> {
    const requestId = readVerificationSid(item)
    if (requestId !== undefined) return otp.get({ appId: application.id }, requestId)
    const phone = tryParsePhone(item)?.phone
    const request = phone && (await otp.findVerification(facade, application, phone))
    if (!request) throw notFound('otpRequest')
    return request
  }

  /** Presents a verification that can be read. @throws NOT_FOUND */
  function present(request: OtpRequest): object {
    const status = readableStatus(request, clock.now())
    if (status === undefined) throw notFound('otpRequest')
    return presentVerification(toVerification(request, status), publicUrl())
  }

  async function update(call: Call, { item }: { item: string }): Promise<object> {
    const { Status } = await readFields(call.request, ['Status'])
    // A request is verified by its code alone.
    if (Status !== 'canceled') throw invalidParameter('Status')
    const request = await find(call, item)
    if (request.status !== 'pending') return present(request)
    const { id: requestId } = request
    try {
      return present(await otp.cancel(call.application, { requestId }))
    } catch (error) {
      // It has ended meanwhile.
      if (!(error instanceof ServiceError) || !endedCodes.has(error.code)) throw error
      return present(await otp.get({ appId: call.application.id }, requestId))
    }
  }

  async function check(call: Call): Promise<object> {
    const { application, request, set } = call
    deferRateHeaders(request, () => otp.peekRate(application, 'verify'))
    const fields = await readFields(request, ['Code', 'VerificationSid', 'To'])
    const code = checkField('Code', codeSchema, fields.Code)
    const target = await readCheckTarget(application, fields)
    const { rate, request: checked, result } = await otp.check(application, target, { code })
    if (!isRejected(result)) {
      setRateHeaders(set.headers, rate)
      return presentCheck(toVerification(result, 'approved'))
    }
    const { rejected } = result
    const isOver = rejected.code === 'ATTEMPTS_EXHAUSTED' && (checked?.expiresAt ?? 0) <= clock.now()
    if (isOver) throw attachRate({ rejected: notFound('otpRequest') }, rate)
    if (rejected.code !== 'INVALID_CODE' || !checked) throw attachRate(result, rate)
    setRateHeaders(set.headers, rate)
    return presentCheck(toVerification({ ...checked, updatedAt: clock.now() }, 'pending'))
  }

  /** The sid counts where both are given. @throws INVALID_ARGUMENT without either; INVALID_PHONE_NUMBER */
  async function readCheckTarget(
    application: CallingApplication,
    { VerificationSid, To }: Fields<'VerificationSid' | 'To'>,
  ): Promise<OtpTarget> {
    // Looked up by the operation, which charges the rate for an unknown one too.
    if (VerificationSid !== undefined) return { requestId: readVerificationSid(VerificationSid) ?? '' }
    if (To === undefined) throw invalidParameter('To')
    const request = await otp.findVerification(facade, application, To)
    return { requestId: request?.id ?? '' }
  }

  return {
    verifications: { POST: create },
    verification: {
      GET: async (call: Call, { item }: { item: string }) => present(await find(call, item)),
      POST: update,
    },
    checks: { POST: check },
  }
}

const endedCodes: ReadonlySet<string> = new Set([
  'ALREADY_VERIFIED',
  'OTP_EXPIRED',
  'OTP_CANCELED',
  'ATTEMPTS_EXHAUSTED',
])

const channels: Record<string, ChannelChoice> = {
  sms: { channel: 'sms' },
  whatsapp: { channel: 'whatsapp' },
  call: { channel: 'voice' },
  // Twilio has no Telegram: its clients would not know the channel of the answer.
  auto: { withoutChannels: ['telegram'] satisfies Channel[] },
}

function readChannel(channel: string | undefined): ChannelChoice {
  const choice = Object.entries(channels).find(([name]) => name === channel)?.[1]
  if (!choice) throw invalidParameter('Channel')
  return choice
}

/** @throws INVALID_ARGUMENT */
function readOptions(fields: Fields<(typeof createFields)[number]>) {
  const { Channel, Locale, DeviceIp, SendDigits, Tags, EnableSnaClientToken = 'false' } = fields
  // Dialed after a call is answered.
  if (SendDigits !== undefined && (Channel === 'call' || Channel === 'auto'))
    throw invalidParameter('SendDigits')
  if (EnableSnaClientToken !== 'false') throw invalidParameter('EnableSnaClientToken')
  return {
    ...(Locale !== undefined && { locale: checkField('Locale', sendFields.locale, Locale) }),
    ...(DeviceIp !== undefined && { clientIp: checkField('DeviceIp', sendFields.clientIp, DeviceIp) }),
    ...(Tags !== undefined && { metadata: checkField('Tags', sendFields.metadata, parseTags(Tags)) }),
  }
}

function parseTags(text: string): unknown {
  try {
    return parseStrictJson(text)
  } catch {
    throw invalidField('body', 'Tags', 'Expected a JSON object.')
  }
}
