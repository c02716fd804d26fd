import { readRefusal } from '../apps/authentication.ts'
import { destinationBlocked } from '../guard/blocked.ts'
import { findListing, withListing } from '../guard/listing.ts'
import { ReplayedError } from '../limits/idempotency.ts'
import type { CallingApplication } from '../model/application.ts'
import { hashContexts } from '../model/context.ts'
import { inboxProvider, type Dispatched } from '../model/delivery.ts'
import { notFound } from '../model/errors.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { trustOfCall, type PhoneRecord } from '../model/phone-record.ts'
import { invalidPhone, type Phone } from '../model/phone.ts'
import type { Channel } from '../model/request.ts'
import { attachRate, isRejected, reject, type Rejected } from '../model/rejected.ts'
import type { Change, Decision, NamedRows, Operation, Rows } from '../store/operation.ts'
import { judgeMessage, nameJudgeRows, nameStrangerRows, senderOf } from './judge-message.ts'
import type { OtpNeeds } from './needs.ts'
import { chooseChannels, firstProvider } from './new-message.ts'
import { hasPhoneBudgets, namePhoneRows, readNationalPhone, readPhone, tryReadPhone } from './phones.ts'
import { refusedSendTo, type RefusedSend } from './refused-sends.ts'
import { chargeSend, otpRateLimit } from './rate-limits.ts'
import { relayEventChange, type RelayedFacts } from '../log/relay-events.ts'
import {
  claimRelay,
  heldBack,
  noRoute,
  readEarlierRelay,
  relayScopes,
  saveRelay,
  type Relayed,
  type RelayDecision,
  type RelayInput,
  type RelayResult,
  type RelayScopes,
} from './relay-once.ts'
import { createRelayOutcomes } from './relay-outcomes.ts'
import { decideOutcome, settleRelay, type SettleNeeds } from './relay-settle.ts'
import { revertRelayedCount } from './guard-counts.ts'

/** Time for all providers together: callers wait five seconds, and some no longer. */
const dispatchMs = 4_000

type RelayNeeds = Omit<
  OtpNeeds,
  'attempts' | 'challenges' | 'checkFailuresMax' | 'checkProof' | 'onEnded' | 'random'
> &
  SettleNeeds

/** A call that sends a code of another system, as it was read. */
type RelayCall = {
  application: CallingApplication
  phone: Phone
  input: RelayInput
  scopes: RelayScopes
  id: string
  contexts: readonly string[]
}

export type OtpRelay = ReturnType<typeof createOtpRelay>

/**
 * Sends codes that another system made and checks. There is no OTP request, no identity and no retry: the code is in memory
 * while the call lasts, and nowhere else.
 */
export function createOtpRelay(needs: RelayNeeds) {
  const { store, clock, newId, keys, delivery, plans, guard } = needs

  return {
    reportOutcome: createRelayOutcomes(needs),

    /**
     * Sends a code once: the same code for the same phone within a minute is answered again. Charged as a send. The guard
     * applies its lists and daily cap; as otpd never learns whether a code was verified, it compares with what is
     * usual in the country.
     *
     * @throws INVALID_PHONE_NUMBER; UNAUTHENTICATED or FORBIDDEN when the application changed since its credentials were
     *   checked
     * @throws RATE_LIMITED (APP_RATE, PHONE_SEND_BUDGET); only the refusal was recorded
     * @throws IDEMPOTENCY_KEY_REUSED; CONFLICT (IDEMPOTENCY_IN_PROGRESS) while an equal call is under way
     * @throws DESTINATION_BLOCKED by the guard; DELIVERY_FAILED when no provider accepted the message in time
     */
    async deliver(
      application: CallingApplication,
      input: RelayInput,
      call?: IdempotencyScope,
    ): Promise<RelayResult> {
      const phone = tryReadPhone(input) ?? (await readNationalPhone(needs, application, input))
      const { code, clientIp = null } = input
      const scopes = relayScopes(keys, application.id, { phone: phone.phone, code }, call)
      const id = newId('msg')
      const contexts = hashContexts(keys, application.developerId, { clientIp, deviceId: null })
      const made = { application, phone, input, scopes, id, contexts }
      const decided = await store.decide(relayOperation(made))
      const { rate, alert } = decided
      const { developerId, id: appId } = application
      if (alert) needs.guard.onAlert(alert, { developerId, appId })
      if (decided.kind === 'ended') {
        const { result, replayed, refusedSend, judged } = decided
        if (!isRejected(result)) return { ...result, replayed, rate }
        if (judged) await revertRelayedCount(needs, judged)
        if (refusedSend) await needs.recordRefusedSend(application, refusedSend, result)
        throw replayed ? new ReplayedError(result.rejected) : attachRate(result, rate)
      }
      const { message, channels, judged } = decided
      const result = await settleRelay(needs, scopes, message, channels, await dispatch(made, decided))
      if (isRejected(result)) {
        await revertRelayedCount(needs, judged)
        throw attachRate(result, rate)
      }
      return { ...result, replayed: false, rate }
    },
  }

  async function dispatch(
    { application, input }: RelayCall,
    { message, channels, otpTtlSeconds }: Extract<RelayDecision, { kind: 'dispatch' }>,
  ): Promise<Dispatched> {
    const settings = await store.read.applications.find(message.developerId, message.appId)
    if (!settings) throw notFound('application')
    return delivery.dispatch({
      request: {
        ...message,
        locale: input.locale ?? null,
        ownText: null,
        template: null,
        expiresAt: message.createdAt + otpTtlSeconds * 1000,
      },
      code: input.code,
      application: settings,
      channels,
      messageNumber: 0,
      attempt: 1,
      excluded: [],
      withinMs: dispatchMs,
      traceparent: application.traceparent,
    })
  }

  function relayOperation(call: RelayCall): Operation<RelayDecision> {
    const { application, phone, scopes } = call
    return {
      preload: {
        first: (rows) => ({
          application,
          answers: scopes.call ? [scopes.repeat, scopes.call] : [scopes.repeat],
          ...namePhoneRows(rows, keys, toOwnedPhone(call)),
          ...nameStrangerRows(needs, { ...toOrigin(call, clock.now()), provider: null }, call.contexts),
          limit: otpRateLimit(plans, application, 'send'),
          subscribers: application.id,
          virtualPhone: phone.isVirtual ? phone.phone : undefined,
        }),
        next: (rows) => nameNextRows(rows, call),
      },
      decide(rows) {
        const now = rows.now()
        const refusal = readRefusal(rows, application)
        if (refusal) return end(refusal)
        const earlier = readEarlierRelay(rows, scopes, now)
        if (earlier && isRejected(earlier)) return end(earlier)
        if (earlier) return replay(earlier.replayed, scopes, now)
        return decideRelay(rows, call, now)
      },
    }
  }

  /** Names the rows that follow from the phone. */
  function nameNextRows(rows: Rows, call: RelayCall): NamedRows {
    const now = rows.now()
    const { record } = readPhone(rows, keys, toOwnedPhone(call))
    return {
      limit: otpRateLimit(plans, rows.caller(call.application), 'send'),
      ...nameJudgeRows(needs, rows, describeRelayed(rows, call, record, now), now),
    }
  }

  /** Charges the limits, lets the guard judge, and says whether the message is to be dispatched. */
  function decideRelay(rows: Rows, call: RelayCall, now: number): Decision<RelayDecision> {
    const { application, phone, input, scopes, contexts } = call
    const { id: appId, environment, developerId } = application
    // Before the limits: invalid numbers are all refused alike.
    const inboxOwnerId = phone.isVirtual ? rows.virtualPhoneOwner(phone.phone) : developerId
    if (inboxOwnerId === undefined) return end(reject(invalidPhone()))
    const owned = toOwnedPhone(call)
    const loaded = readPhone(rows, keys, owned)
    const trust = trustOfCall(loaded.record, { clientIp: input.clientIp ?? null, contexts }, now)
    const usage = { record: loaded.record, trust, isLimited: hasPhoneBudgets(owned) }
    const charged = chargeSend(needs, rows, application, usage, now)
    if (isRejected(charged)) return end(charged, refusedSendTo(phone, loaded.record))
    const described = describeRelayed(rows, call, loaded.record, now)
    const { channels, isInboxOnly, ...judged } = described
    const message = toFacts(call, channels, now)
    const { verdict, guardChanges } = judgeMessage(needs, rows, appId, judged, now)
    const { violatedRules, alert } = verdict
    const { rate } = charged
    const subscribers = rows.subscribers(appId)
    const event = (...[type, detail]: [Parameters<typeof relayEventChange>[1], string]) =>
      relayEventChange(newId, type, message, subscribers, now, detail)
    const changes: Change[] = [...charged.changes, ...guardChanges]
    if (verdict.blocked) {
      const result = reject(destinationBlocked({ id: call.id }))
      changes.push(event('message.undelivered', `blocked ${violatedRules.join(' ')}`))
      return {
        result: { kind: 'ended', result, replayed: false, rate, alert },
        changes: [...changes, ...saveRelay(scopes, result, now)],
      }
    }
    changes.push({ kind: 'phone', handle: loaded, record: charged.record })
    if (charged.isOverBudget) changes.push(event('guard.flagged', 'PHONE_SEND_BUDGET'))
    if (violatedRules.length > 0) changes.push(event('guard.flagged', violatedRules.join(' ')))
    const isHeldBack = environment === 'test' || phone.isVirtual
    if (isHeldBack || isInboxOnly || channels.length === 0) {
      const dispatched = isHeldBack ? heldBack(message.channel) : noRoute
      const outcome = decideOutcome(newId, scopes, message, channels, dispatched)
      return {
        result: { kind: 'ended', rate, alert, judged, result: outcome.result, replayed: false },
        changes: [...changes, ...outcome.changes(subscribers, now)],
      }
    }
    const { otpTtlSeconds } = rows.caller(application)
    return {
      result: { kind: 'dispatch', rate, alert, judged, message, channels, otpTtlSeconds },
      changes: [...changes, ...claimRelay(scopes, now)],
    }
  }

  /** Describes the message to the guard, with its channels. */
  function describeRelayed(rows: Rows, call: RelayCall, record: PhoneRecord, now: number) {
    const { application, phone, input, contexts } = call
    const { id: appId, environment } = application
    const { clientIp = null } = input
    const routes = delivery.routesFor({ environment, appId, ...phone })
    const listing = findListing(rows.listRules(application), { appId, ...phone, clientIp }, now)
    const origin = { ...toOrigin(call, now), listing }
    const refused = guard.refusedChannels({ ...origin, provider: null })
    const channels = chooseChannels(routes, input, refused)
    const provider = firstProvider(routes, channels)
    const appCountries = rows.caller(application).countries
    const estimatePrice = () => delivery.estimatePrice({ environment, appId, ...phone }, channels)
    const message = { ...origin, provider, channels, appCountries, estimatePrice }
    const sender = withListing(senderOf(record, { contexts, createdAt: now }), listing)
    return { message, sender, channels, isInboxOnly: provider === inboxProvider }
  }
}

const toOwnedPhone = ({ application: { developerId, environment }, phone }: RelayCall) => ({
  ...phone,
  developerId,
  environment,
})

/** The message as the guard sees it, before the developer's rules are read. */
const toOrigin = (call: RelayCall, createdAt: number) => ({
  ...toOwnedPhone(call),
  clientIp: call.input.clientIp ?? null,
  createdAt,
  resends: 0,
  isRelayed: true,
})

/** The message as its events show it. */
const toFacts = (
  { application, phone, input, id }: RelayCall,
  channels: readonly Channel[],
  now: number,
): RelayedFacts => ({
  id,
  developerId: application.developerId,
  projectId: application.projectId,
  appId: application.id,
  environment: application.environment,
  phone: phone.phone,
  country: phone.country,
  clientIp: input.clientIp ?? null,
  channel: channels[0] ?? 'sms',
  createdAt: now,
  traceparent: application.traceparent,
})

/** Refuses the call before anything is charged. */
const end = (result: Rejected, refusedSend?: RefusedSend): Decision<RelayDecision> => ({
  result: { kind: 'ended', result, replayed: false, rate: undefined, refusedSend },
  changes: [],
})

/** Repeats the result of an equal call. The key of this one may be another. */
const replay = (result: Relayed | Rejected, { call }: RelayScopes, now: number): Decision<RelayDecision> => ({
  result: { kind: 'ended', result, replayed: true, rate: undefined },
  changes: isRejected(result) ? [] : saveRelay({ call }, result, now),
})
