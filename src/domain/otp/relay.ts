import { readRefusal } from '../apps/authentication.ts'
import { alertChanges } from '../guard/alert.ts'
import { destinationBlocked } from '../guard/blocked.ts'
import { namesOf, readGuardFacts } from '../guard/facts.ts'
import type { GuardJudge } from '../guard/judge.ts'
import { findListing, withListing } from '../guard/listing.ts'
import { ReplayedError } from '../limits/idempotency.ts'
import type { CallingApplication } from '../model/application.ts'
import { hashContexts } from '../model/context.ts'
import { inboxProvider, type DispatchResult } from '../model/delivery.ts'
import { notFound } from '../model/errors.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { hashSubscriber, laneFor, type PhoneRecord } from '../model/phone-record.ts'
import { invalidPhone, type Phone } from '../model/phone.ts'
import { attachRate, isRejected, reject, type Rejected } from '../model/rejected.ts'
import type { Change, Decision, Rows } from '../store/operation.ts'
import type { Store } from '../store/store.ts'
import type { OtpNeeds, OtpTables } from './operations.ts'
import { chooseChannels } from './outgoing.ts'
import { hasPhoneBudgets, otherPlaces, readMovedPhone } from './phones.ts'
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
  type RelayDecision,
  type RelayInput,
  type RelayResult,
  type RelayScopes,
} from './relay-once.ts'
import { createRelayOutcomes, type OutcomeTables } from './relay-outcomes.ts'
import { run } from './run.ts'
import { senderOf } from './sender.ts'
import { decideOutcome, settleRelay, type SettleNeeds, type SettleTables } from './relay-settle.ts'
import { readTypedPhone } from './typed-phone.ts'
import { revertRelayedCount } from './undelivered.ts'

/** Time for all providers together: callers wait five seconds, and some no longer. */
const dispatchMs = 4_000

type RelayNeeds = Omit<OtpNeeds, 'store' | 'attempts' | 'challenges' | 'checkFailuresMax' | 'random'> &
  Omit<SettleNeeds, 'store'> & { store: Store<OtpTables | OutcomeTables | SettleTables> }

export type OtpRelay = ReturnType<typeof createOtpRelay>

/**
 * Sends codes that another system made and checks. There is no OTP request, no identity and no retry: the code is in memory
 * while the call lasts, and nowhere else.
 */
export function createOtpRelay(needs: RelayNeeds) {
  const { store, clock, newId, keys, delivery, plans } = needs

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
      const typed = readTypedPhone(needs, application, input)
      const phone = typed instanceof Promise ? await typed : typed
      const { code } = input
      const scopes = relayScopes(keys, application.id, { phone: phone.phone, code }, call)
      const decided = await decide(application, phone, input, scopes)
      const { rate, alert } = decided
      if (alert) needs.guard.onAlert(alert)
      if (decided.kind === 'ended') {
        const { result, replayed, refusedSend, judged } = decided
        if (!isRejected(result)) return { ...result, replayed, rate }
        if (judged) await revertRelayedCount(needs, judged.guarded, judged.sender)
        if (refusedSend) await needs.recordRefusedSend(application, refusedSend, result)
        throw replayed ? new ReplayedError(result.rejected) : attachRate(result, rate)
      }
      const { message, channels, otpTtlSeconds, judged } = decided
      const result = await settleRelay(needs, scopes, message, channels, await dispatch())
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
    const contexts = hashContexts(keys, developerId, { clientIp, deviceId: null })
    return run(needs, ({ guard, readPhone }) => ({
      needs: () => ({
        application,
        answers: scopes.call ? [scopes.repeat, scopes.call] : [scopes.repeat],
        phone: hashSubscriber(keys, subscriber),
        limit: otpRateLimit(plans, application, 'send'),
        subscribers: appId,
        virtualPhone: phone.isVirtual ? phone.phone : undefined,
      }),

      further(rows) {
        const now = rows.now(clock)
        const { record } = readMovedPhone(rows, keys, subscriber)
        const { guarded, sender } = describeMessage(rows, guard, record, now)
        const guardKeys = guard.keysToJudge(guarded, sender, now)
        return {
          limit: otpRateLimit(plans, rows.caller(application), 'send'),
          guard: guardKeys && namesOf(rows.guard, guardKeys),
          subscribersOfDeveloper: guardKeys?.relay && developerId,
          ...otherPlaces(rows, keys, subscriber),
        }
      },

      decide(rows): Decision<RelayDecision> {
        const now = rows.now(clock)
        const refusal = readRefusal(rows, application)
        const caller = rows.caller(application)
        const earlier = readEarlierRelay(rows, scopes, now)
        const inboxOwnerId = phone.isVirtual ? rows.virtualPhoneOwner(phone.phone) : developerId
        const loaded = readPhone(rows, keys, subscriber)
        const { guarded, sender, channels, isInboxOnly } = describeMessage(rows, guard, loaded.record, now)
        const guardFacts = readGuardFacts(rows.guard, guard.keysToJudge(guarded, sender, now))
        const rate = readRate(rows, otpRateLimit(plans, caller, 'send'), now)
        const subscribers = rows.subscribers(appId)
        const judged = { guarded, sender }
        const alertSubscribers = guardFacts?.keys.relay ? rows.subscribersOfDeveloper(developerId) : []
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
        if (inboxOwnerId === undefined) return end(reject(invalidPhone()))
        const lane = laneFor(loaded.record, { clientIp, contexts }, now)
        const usage = { record: loaded.record, lane, isLimited: hasPhoneBudgets(subscriber) }
        const charged = chargeSend(needs.sendBudget(), rate, usage, now)
        if (isRejected(charged)) return end(charged, refusedSendTo(phone, loaded.record))
        const { record } = charged
        const message: RelayedFacts = {
          id,
          developerId,
          projectId,
          appId,
          environment,
          phone: phone.phone,
          country: phone.country,
          clientIp,
          channel: channels[0] ?? 'sms',
          createdAt: now,
          traceparent: application.traceparent,
        }
        const event = (...[type, detail]: [Parameters<typeof relayEventChange>[1], (string | null)?]) =>
          relayEventChange(newId, type, message, subscribers, now, detail)
        const { verdict, changes: counts } = guard.judge(guardFacts, guarded, sender)
        const changes: Change[] = [
          ...charged.changes,
          { kind: 'phone', slot: loaded, record },
          { kind: 'guard', changes: counts },
          ...alertChanges(newId, message, verdict.alert, alertSubscribers, now),
        ]
        if (verdict.blocked) {
          const result = reject(destinationBlocked({ id }))
          const detail = `blocked ${verdict.violatedRules.join(' ')}`
          return {
            result: { kind: 'ended', result, replayed: false, rate: charged.rate, alert: verdict.alert },
            changes: [...changes, event('message.undelivered', detail), ...saveRelay(scopes, result, now)],
          }
        }
        if (charged.isOverBudget) changes.push(event('guard.flagged', 'PHONE_SEND_BUDGET'))
        if (verdict.violatedRules.length > 0)
          changes.push(event('guard.flagged', verdict.violatedRules.join(' ')))
        const dispatched =
          environment === 'test' || phone.isVirtual
            ? heldBack(message.channel)
            : isInboxOnly || channels.length === 0
              ? noRoute
              : undefined
        const decided = { rate: charged.rate, alert: verdict.alert, judged }
        if (dispatched) {
          const outcome = decideOutcome(newId, scopes, message, channels, dispatched)
          return {
            result: { kind: 'ended', ...decided, result: outcome.result, replayed: false },
            changes: [...changes, ...outcome.changes(subscribers, now)],
          }
        }
        const { otpTtlSeconds } = caller
        return {
          result: { kind: 'dispatch', ...decided, message, channels, otpTtlSeconds },
          changes: [...changes, ...claimRelay(scopes, now)],
        }
      },
    }))

    function describeMessage(rows: Rows, guard: GuardJudge, record: PhoneRecord, now: number) {
      const routes = delivery.routesFor({ environment, appId, ...phone })
      const listing = findListing(rows.listRules(application), { appId, ...phone, clientIp }, now)
      const origin = { ...subscriber, clientIp, createdAt: now, resends: 0, listing }
      const refused = guard.refusedChannels({ ...origin, provider: null })
      const channels = chooseChannels(routes, { ...input, refused })
      const isInboxOnly = routes.candidatesFor(channels)[0]?.provider === inboxProvider
      const provider = isInboxOnly ? inboxProvider : null
      const appCountries = rows.caller(application).countries
      const guarded = { ...origin, provider, channels, isRelayed: true, appCountries }
      const sender = withListing(senderOf(record, { contexts, createdAt: now }), listing)
      return { guarded, sender, channels, isInboxOnly }
    }

    /** Refuses the call before anything is charged. */
    function end(result: Rejected, refusedSend?: RefusedSend): Decision<RelayDecision> {
      return { result: { kind: 'ended', result, replayed: false, rate: undefined, refusedSend }, changes: [] }
    }
  }
}
