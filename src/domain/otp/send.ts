import { readRefusal } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import { deriveCode, hashCode, newCodeSalt } from '../model/code.ts'
import type { Facade } from '../model/compat.ts'
import type { SentTemplate } from '../model/sent-template.ts'
import { isRejected, reject, type Rejected } from '../model/rejected.ts'
import { breakdownChange, countChange, newRequestCounts } from '../log/changes.ts'
import { blockSend } from '../guard/blocked.ts'
import { noToken, type ChallengeAnswer } from '../guard/challenge.ts'
import { findListing, withListing } from '../guard/listing.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { hashContexts } from '../model/context.ts'
import type { Keys } from '../model/keys.ts'
import { knownSenderLine } from '../model/request-history.ts'
import type { OtpRequest } from '../model/request.ts'
import { trustOfCall, type PhoneRecord, type OwnedPhone, type TrustLevel } from '../model/phone-record.ts'
import { closeRequest } from './lifecycle.ts'
import type { OtpNeeds } from './needs.ts'
import { chargeSend, otpRateLimit } from './rate-limits.ts'
import { judgeMessage, nameJudgeRows, nameStrangerRows, senderOf, sentChanges } from './judge-message.ts'
import { chooseChannels, firstProvider, startDelivery, type SendInput } from './new-message.ts'
import { invalidPhone, type Phone } from '../model/phone.ts'
import {
  hasPhoneBudgets,
  namePhoneRows,
  readNationalPhone,
  readPhone,
  tryReadPhone,
  withRequest,
} from './phones.ts'
import { refusedSendTo } from './refused-sends.ts'
import {
  completeSend,
  earlierRequest,
  readEarlierSend,
  challengeRefusal,
  limitRefusal,
  refusalDecision,
  withResult,
  type SendDecision,
  type Replay,
  type SendResult,
} from './send-result.ts'
import type { RequestFinder } from './target.ts'
import { readTemplate } from './templates.ts'
import type { Decision, NamedRows, Operation, Rows } from '../store/operation.ts'
import { utcDay } from '../../shared/durations.ts'

/** A call that sends a code, as it was read. */
type SendCall = {
  application: CallingApplication
  phone: Phone
  input: SendInput
  scope?: IdempotencyScope | undefined
  /** Undefined for a façade, which cannot show challenges. */
  challenge?: ChallengeAnswer | undefined
  facade?: Facade | undefined
  /** Absent or null for the built-in texts. */
  template?: SentTemplate | Rejected | null
}

/** A call that sends a code, with what is new about its request. */
type NewSend = SendCall & {
  phone: Phone & OwnedPhone
  clientIp: string | null
  contexts: readonly string[]
  id: string
  codeSalt: string
}

/** Sends codes. */
export function createOtpSend(needs: OtpNeeds) {
  const { clock, newId, keys, plans, delivery, attempts, guard } = needs

  return { send, readCall, sendOperation }

  /**
   * Creates a code for a phone and sends it. Atomic: the request, its events, its message and its counters,
   * but for the guard's counts of networks, devices and prefixes: SQLite writes these with a later call, every ten seconds.
   *
   * @throws INVALID_PHONE_NUMBER; INVALID_ARGUMENT as `readTemplate`
   * @throws UNAUTHENTICATED or FORBIDDEN when the application changed since its credentials were checked
   * @throws RATE_LIMITED (APP_RATE, PHONE_SEND_BUDGET); only the refusal was recorded
   * @throws IDEMPOTENCY_KEY_REUSED when the key was used with a different body
   * @throws CONFLICT (IDEMPOTENCY_IN_PROGRESS)
   * @throws DESTINATION_BLOCKED by the guard; the request has failed
   * @throws CHALLENGE_REQUIRED by the guard; there is no request
   * @throws DELIVERY_FAILED when no provider accepted the message and none will be tried again; the request
   *   has failed
   */
  async function send(
    application: CallingApplication,
    input: SendInput,
    scope?: IdempotencyScope,
  ): Promise<SendResult> {
    const outcome = await needs.store.decide(sendOperation(await readCall(application, input, scope)))
    return completeSend(needs, application, scope, outcome)
  }

  /** Reads the phone and the template of a call, and checks its challenge. @throws INVALID_PHONE_NUMBER */
  async function readCall(
    application: CallingApplication,
    input: SendInput,
    scope?: IdempotencyScope,
  ): Promise<SendCall> {
    const phone = tryReadPhone(input) ?? (await readNationalPhone(needs, application, input))
    const challenge =
      input.challenge === undefined ? noToken : await needs.challenges.answer(application, input)
    const hasTemplate = input.template !== undefined || input.variables !== undefined
    const template = hasTemplate ? await readTemplate(needs, application, phone, input) : null
    return { application, phone, input, scope, challenge, template }
  }

  /** The operation of a send. @param replaced request that is canceled when the new one is made */
  function sendOperation(call: SendCall, replaced?: RequestFinder): Operation<SendDecision | Replay> {
    const { developerId, environment } = call.application
    const { clientIp = null, deviceId = null } = call.input
    const send: NewSend = {
      ...call,
      phone: { ...call.phone, developerId, environment },
      id: newId('otp'),
      codeSalt: newCodeSalt(needs.random),
      clientIp,
      contexts: hashContexts(keys, developerId, { clientIp, deviceId }),
    }
    return {
      preload: {
        lookUp: replaced?.lookUp,
        first: (rows) => ({ ...nameFirstRows(rows, send), request: replaced?.nameRows(rows).request }),
        next: (rows) => ({ ...nameNextRows(rows, send), request: replaced?.nameRows(rows).request }),
      },
      decide: (rows) => decideSend(rows, send, replaced),
    }
  }

  function decideSend(rows: Rows, send: NewSend, replaced?: RequestFinder): Decision<SendDecision | Replay> {
    const { phone, scope, template = null } = send
    const now = rows.now()
    const refusal = readRefusal(rows, send.application)
    if (refusal) return refusalDecision(refusal)
    const earlier = scope && readEarlierSend(rows, scope, now)
    if (earlier) return isRejected(earlier) ? refusalDecision(earlier) : { result: earlier, changes: [] }
    if (isRejected(template)) return refusalDecision(template)
    const application = rows.caller(send.application)
    // Before the limits: invalid numbers are all refused alike.
    const inboxOwnerId = phone.isVirtual ? rows.virtualPhoneOwner(phone.phone) : application.developerId
    if (inboxOwnerId === undefined) return refusalDecision(reject(invalidPhone()))
    const loaded = readPhone(rows, keys, phone)
    const { record } = loaded
    const trust = trustOfCall(record, send, now)
    const usage = { record, trust, isLimited: hasPhoneBudgets(phone) }
    const charged = chargeSend(needs, rows, application, usage, now)
    if (isRejected(charged)) return limitRefusal(charged, refusedSendTo(phone, record))
    const described = describeNewMessage(rows, send, record, now)
    const { verdict, guardChanges } = judgeMessage(needs, rows, application.id, described, now)
    const { rate, isOverBudget } = charged
    const { alert } = verdict
    const changes = [...charged.changes, ...guardChanges]
    // Nothing is sent, so the phone is not charged.
    if (verdict.challenge === 'needed') {
      const refused = { answer: send.challenge, rate, refusedSend: refusedSendTo(phone, record), changes }
      const challenged = challengeRefusal(needs, verdict, now, refused)
      if (challenged) return challenged
    }
    const { sender, channels, delivered } = described
    const isKnownSender = sender.isKnownPhone || verdict.isKnownOrigin === true
    const start = { application, template, record, trust, delivered, isKnownSender }
    const request = buildRequest(keys, send, start, now)
    // A blocked send is no message to the phone: its budget is for those that are sent.
    const used = verdict.blocked ? record : charged.record
    changes.push({ kind: 'phone', handle: loaded, record: withRequest(used, request) })
    const subscribers = rows.subscribers(application.id)
    if (verdict.blocked) {
      const blocked = blockSend(newId, request, verdict, subscribers, now)
      const refused = refusalDecision(blocked.result, rate, [...changes, ...blocked.changes], alert)
      return scope ? withResult(refused, scope, now) : refused
    }
    const canceled = replaced?.find(rows, now)
    if (canceled)
      changes.push(
        ...closeRequest(newId, { request: canceled, subscribers }, { status: 'canceled' }, now).changes,
      )
    const queued = attempts.enqueue(request, application, [], channels, now)
    changes.push(
      { kind: 'request', request, isNew: true },
      ...queued.changes,
      countChange(request, { requests: 1, queued: 1 }, utcDay(now)),
      breakdownChange(request, newRequestCounts(request), now),
      ...sentChanges(newId, { request, subscribers, inboxOwnerId, isOverBudget, verdict }, now),
    )
    const result = { replayed: false as const, rate, result: request, alert, outgoing: queued.outgoing }
    return scope ? withResult({ result, changes }, scope, now) : { result, changes }
  }

  /** Names the rows of a send that are known before any is read. */
  function nameFirstRows(rows: Rows, send: NewSend): NamedRows {
    const { application, phone, scope, clientIp, contexts, challenge } = send
    const createdAt = clock.now()
    const routes = delivery.routesFor({ ...phone, appId: application.id })
    const provider = firstProvider(routes, routes.channels)
    const message = { ...phone, clientIp, createdAt, resends: 0, provider, challenge }
    return {
      application,
      answers: scope ? [scope] : [],
      ...namePhoneRows(rows, keys, phone),
      ...nameStrangerRows(needs, message, contexts),
      limit: otpRateLimit(plans, application, 'send'),
      subscribers: application.id,
      virtualPhone: phone.isVirtual ? phone.phone : undefined,
    }
  }

  /** Names the rows that follow from those. */
  function nameNextRows(rows: Rows, send: NewSend): NamedRows {
    const { application, scope, phone } = send
    const now = rows.now()
    const { record } = readPhone(rows, keys, phone)
    return {
      limit: otpRateLimit(plans, rows.caller(application), 'send'),
      messages: earlierRequest(rows, scope, now),
      ...nameJudgeRows(needs, rows, describeNewMessage(rows, send, record, now), now),
    }
  }

  /** Describes the message to the guard, with its channels and how it begins. */
  function describeNewMessage(rows: Rows, send: NewSend, record: PhoneRecord, now: number) {
    const { application, phone, input, challenge, clientIp, contexts } = send
    const template = isRejected(send.template) ? null : send.template
    const origin = { ...phone, appId: application.id, clientIp, createdAt: now, resends: 0 }
    const routes = delivery.routesFor(origin)
    const listing = findListing(rows.listRules(application), origin, now)
    const refused = guard.refusedChannels({ ...origin, listing, provider: null })
    const channels = chooseChannels(routes, input, refused, template)
    const delivered = startDelivery(routes, channels, { channel: 'sms', provider: null })
    const appCountries = rows.caller(application).countries
    const estimatePrice = () => delivery.estimatePrice(origin, channels)
    const { provider } = delivered
    const message = { ...origin, listing, provider, channels, appCountries, challenge, estimatePrice }
    const sender = withListing(senderOf(record, { contexts, createdAt: now }), listing)
    return { message, sender, channels, delivered }
  }
}

/** Decisions that a new request is built from. */
type RequestStart = {
  /** As it is now. */
  application: CallingApplication
  template: SentTemplate | null
  /** The record of the phone before the send. */
  record: PhoneRecord
  trust: TrustLevel
  delivered: ReturnType<typeof startDelivery>
  isKnownSender: boolean
}

function buildRequest(keys: Keys, send: NewSend, start: RequestStart, now: number): OtpRequest {
  const { id, codeSalt, input, facade } = send
  const { phone, country, environment } = send.phone
  const { application, template, delivered } = start
  const code = deriveCode(keys, { id, codeSalt, phone, environment, template })
  const ttlSeconds = input.ttlSeconds ?? application.otpTtlSeconds
  return {
    id,
    developerId: application.developerId,
    projectId: application.projectId,
    appId: application.id,
    environment,
    phone,
    country,
    status: 'pending',
    failureReason: null,
    ...delivered,
    locale: input.locale ?? null,
    clientIp: send.clientIp,
    metadata: input.metadata ?? null,
    ownText: input.ownText ?? null,
    template,
    codeSalt,
    codeHash: hashCode(keys, id, code, template?.variables),
    attempts: 0,
    resends: 0,
    createdAt: now,
    sentAt: now,
    expiresAt: now + ttlSeconds * 1000,
    verifiedAt: null,
    contexts: send.contexts,
    startedBy: start.trust === 'stranger' ? 'stranger' : 'known',
    previousRequest: start.record.newestRequest,
    history: start.isKnownSender ? knownSenderLine : '',
    compat: facade ? { facade, messages: [{ channel: delivered.channel, sentAt: now }] } : null,
    updatedAt: now,
    traceparent: application.traceparent,
  }
}
