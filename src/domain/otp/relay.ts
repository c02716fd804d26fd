import { readRefusal } from '../apps/authentication.ts'
import { alertChanges } from '../guard/alert.ts'
import { destinationBlocked } from '../guard/blocked.ts'
import { loadGuardFacts } from '../guard/facts.ts'
import { findListing, withListing } from '../guard/listing.ts'
import { ReplayedError } from '../limits/idempotency.ts'
import type { CallingApplication } from '../model/application.ts'
import { hashContexts } from '../model/context.ts'
import { inboxProvider, type DispatchResult } from '../model/delivery.ts'
import { notFound } from '../model/errors.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { laneFor } from '../model/phone-record.ts'
import { invalidPhone, parsePhone, type Phone } from '../model/phone.ts'
import type { RateState } from '../model/rate-limit.ts'
import { attachRate, isRejected, reject, type Rejected } from '../model/rejected.ts'
import type { Channel } from '../model/request.ts'
import type { Change, Decision } from '../store/operation.ts'
import type { Store } from '../store/store.ts'
import type { OtpNeeds, OtpTables } from './operations.ts'
import { chooseChannels } from './outgoing.ts'
import { hasPhoneBudgets } from './phones.ts'
import { refusedSendTo, type RefusedSend } from './refused-sends.ts'
import { chargeSend, otpRateLimit, readRate } from './rate-limits.ts'
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
  type RelayScopes,
} from './relay-once.ts'
import { run } from './run.ts'
import { senderOf } from './sender.ts'
import { deliveryFailed } from './settle.ts'
import { revertRelayedCount } from './undelivered.ts'

/** Characters of a code that another system made. */
export const relayedCodePattern = '^[0-9A-Za-z]{4,10}$'

/** Time for all providers together: callers wait five seconds, and some no longer. */
const dispatchMs = 4_000

export type RelayInput = {
  phone: string
  /** Made and checked by the caller; matches `relayedCodePattern`. */
  code: string
  channel?: Channel | undefined
  locale?: string | undefined
  /** End user's IP address. */
  clientIp?: string | undefined
}

export type RelayResult = Relayed & { replayed: boolean; rate: RateState | undefined }

type RelayTables = OtpTables | 'applications' | 'changes' | 'leases' | 'relayedMessages' | 'webhookEndpoints'

type RelayNeeds = Omit<OtpNeeds, 'store' | 'attempts' | 'challenges' | 'checkFailuresMax' | 'random'> & {
  store: Store<RelayTables>
  /** Applies a receipt that arrived before its message was stored. */
  applyEarlyReceipt(id: string, provider: string, messageId: string | null): Promise<void>
}

export type OtpRelay = ReturnType<typeof createOtpRelay>

/**
 * Sends codes that another system made and checks. There is no OTP request, no identity and no retry: the code is in memory
 * while the call lasts, and nowhere else.
 */
export function createOtpRelay(needs: RelayNeeds) {
  const { store, clock, newId, keys, delivery, plans } = needs

  return {
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
      const phone = parsePhone(input.phone)
      const { code } = input
      const scopes = relayScopes(keys, application.id, { phone: phone.phone, code }, call)
      const decided = await decide(application, phone, input, scopes)
      const { rate, alert } = decided
      if (alert) needs.guard.onAlert(alert)
      if (decided.kind === 'ended') {
        const { result, replayed, refusedSend } = decided
        if (!isRejected(result)) return { ...result, replayed, rate }
        if (refusedSend) await needs.recordRefusedSend(application, refusedSend, result)
        throw replayed ? new ReplayedError(result.rejected) : attachRate(result, rate)
      }
      const { message, channels, otpTtlSeconds, judged } = decided
      const dispatched = decided.dispatched ?? (await dispatch())
      const result = await settle(scopes, message, channels, dispatched)
      if (isRejected(result)) {
        await revertRelayedCount(needs, judged.guarded, judged.sender)
        throw attachRate(result, rate)
      }
      return { ...result, replayed: false, rate }

      async function dispatch(): Promise<DispatchResult> {
        const settings = await store.read.applications.find(message.developerId, message.appId)
        if (!settings) throw notFound('application')
        return delivery.dispatch({
          request: {
            ...message,
            locale: input.locale ?? null,
            ownText: null,
            expiresAt: message.createdAt + otpTtlSeconds * 1000,
          },
          code,
          application: settings,
          channels,
          attempt: 1,
          excluded: [],
          withinMs: dispatchMs,
          traceparent: application.traceparent,
        })
      }
    },
  }

  function decide(
    application: CallingApplication,
    phone: Phone,
    input: RelayInput,
    scopes: RelayScopes,
  ): Promise<RelayDecision> {
    const { id: appId, developerId, projectId, environment } = application
    const subscriber = { ...phone, developerId, environment }
    const { clientIp = null } = input
    const id = newId('msg')
    return run(needs, ({ guard, readPhone }) => ({
      async read(rows) {
        const now = rows.now(clock)
        const refusal = await readRefusal(rows, application)
        const caller = await rows.caller(application)
        const earlier = await readEarlierRelay(rows, scopes, now)
        const inboxOwnerId = phone.isVirtual ? await rows.findVirtualPhoneOwner(phone.phone) : developerId
        const loaded = await readPhone(rows, keys, subscriber)
        const contexts = hashContexts(keys, developerId, { clientIp, deviceId: null })
        const routes = delivery.routesFor({ environment, appId, ...phone })
        const listed = { appId, ...phone, clientIp }
        const listing = findListing(await rows.listRules(application), listed, now)
        const origin = { ...subscriber, clientIp, createdAt: now, resends: 0, listing }
        const message = { ...origin, provider: null }
        const channels = chooseChannels(routes, { ...input, refused: guard.refusedChannels(message) })
        const isInboxOnly = routes.candidatesFor(channels)[0]?.provider === inboxProvider
        const provider = isInboxOnly ? inboxProvider : null
        const guarded = { ...origin, provider, channels, isRelayed: true, appCountries: caller.countries }
        const sender = withListing(senderOf(loaded.record, { contexts, createdAt: now }), listing)
        const guardFacts = await loadGuardFacts(rows.guard, guard.keysToJudge(guarded, sender, now))
        const rate = await readRate(rows, otpRateLimit(plans, caller, 'send'), now)
        const subscribers = await rows.subscribers(appId)
        const alertSubscribers = guardFacts?.keys.relay ? await rows.subscribersOfDeveloper(developerId) : []
        const judged = { guarded, sender, guardFacts, alertSubscribers }
        const loadedFacts = { refusal, caller, earlier, inboxOwnerId, loaded, channels, isInboxOnly }
        return { ...loadedFacts, now, judged, rate, subscribers }
      },

      decide(facts): Decision<RelayDecision> {
        const { now, refusal, caller, earlier, loaded, channels, judged, subscribers } = facts
        if (refusal) return end(refusal)
        if (earlier && isRejected(earlier)) return end(earlier)
        if (earlier) {
          // The key of this call may be another one.
          const changes = isRejected(earlier.replayed)
            ? []
            : saveRelay({ call: scopes.call }, earlier.replayed, now)
          return {
            result: { kind: 'ended', result: earlier.replayed, replayed: true, rate: undefined },
            changes,
          }
        }
        // Before the limits: invalid numbers are all refused alike.
        if (facts.inboxOwnerId === undefined) return end(reject(invalidPhone()))
        const { contexts } = judged.sender
        const lane = laneFor(loaded.record, { clientIp, contexts }, now)
        const usage = { record: loaded.record, lane, isLimited: hasPhoneBudgets(subscriber) }
        const charged = chargeSend(needs.sendBudget(), facts.rate, usage, now)
        if (isRejected(charged)) return end(charged, refusedSendTo(phone, loaded.record))
        const { rate, record } = charged
        const message: RelayedFacts = {
          id,
          developerId,
          projectId,
          appId,
          environment,
          phone: phone.phone,
          country: phone.country,
          channel: channels[0] ?? 'sms',
          createdAt: now,
          traceparent: application.traceparent,
        }
        const event = (...[type, detail]: [Parameters<typeof relayEventChange>[1], (string | null)?]) =>
          relayEventChange(newId, type, message, subscribers, now, detail)
        const { verdict, changes: counts } = guard.judge(judged.guardFacts, judged.guarded, judged.sender)
        const changes: Change[] = [
          ...charged.changes,
          { kind: 'phone', slot: loaded, record },
          { kind: 'guard', changes: counts },
          ...alertChanges(newId, message, verdict.alert, judged.alertSubscribers, now),
        ]
        if (verdict.blocked) {
          const result = reject(destinationBlocked({ id }))
          const detail = `blocked ${verdict.violatedRules.join(' ')}`
          return {
            result: { kind: 'ended', result, replayed: false, rate, alert: verdict.alert },
            changes: [...changes, event('message.undelivered', detail), ...saveRelay(scopes, result, now)],
          }
        }
        if (charged.isOverBudget) changes.push(event('guard.flagged', 'PHONE_SEND_BUDGET'))
        if (verdict.violatedRules.length > 0)
          changes.push(event('guard.flagged', verdict.violatedRules.join(' ')))
        const dispatched =
          environment === 'test' || phone.isVirtual
            ? heldBack(message.channel)
            : facts.isInboxOnly || channels.length === 0
              ? noRoute
              : undefined
        const call = { message, channels, otpTtlSeconds: caller.otpTtlSeconds, dispatched }
        return {
          result: { kind: 'dispatch', ...call, judged, rate, alert: verdict.alert },
          changes: [...changes, ...claimRelay(scopes, now)],
        }
      },
    }))

    /** Refuses the call before anything is charged. */
    function end(result: Rejected, refusedSend?: RefusedSend): Decision<RelayDecision> {
      return { result: { kind: 'ended', result, replayed: false, rate: undefined, refusedSend }, changes: [] }
    }
  }

  /** Stores the outcome of a dispatch: the message, its log entry, and the result for equal calls. */
  async function settle(
    scopes: RelayScopes,
    message: RelayedFacts,
    channels: readonly Channel[],
    dispatched: DispatchResult,
  ): Promise<Relayed | Rejected> {
    const { id, phone, appId } = message
    const isOut = dispatched.kind === 'accepted' || dispatched.kind === 'uncertain'
    const messageId = dispatched.kind === 'accepted' ? dispatched.messageId : null
    const failure = dispatched.kind === 'accepted' ? null : (dispatched.failure?.class ?? null)
    const candidate = isOut ? dispatched.candidate : undefined
    const status = dispatched.kind === 'accepted' ? ('sent' as const) : ('unknown' as const)
    const sentBy = { ...message, ...(candidate && { channel: candidate.channel }) }
    const result = candidate
      ? { id, phone, channel: candidate.channel, status }
      : deliveryFailed({ id }, failure, { channels, country: message.country })
    await store.write(async (tx) => {
      const now = await tx.leases.now()
      const subscribers = await tx.webhookEndpoints.subscribers(appId)
      if (candidate) {
        const { traceparent: _, ...stored } = sentBy
        await tx.relayedMessages.insert({ ...stored, provider: candidate.provider, messageId, status })
      }
      const type = candidate ? 'message.sent' : 'message.undelivered'
      await tx.changes.apply([
        relayEventChange(newId, type, sentBy, subscribers, now, failure),
        ...saveRelay(scopes, result, now),
      ])
    })
    if (candidate) await needs.applyEarlyReceipt(id, candidate.provider, messageId)
    return result
  }
}
