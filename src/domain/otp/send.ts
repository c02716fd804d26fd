import { utcDay } from '../log/analytics.ts'
import { readRefusal } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import type { Facade } from '../model/compat.ts'
import { isRejected, reject } from '../model/rejected.ts'
import { breakdownChange, countChange, newRequestCounts } from '../log/counts.ts'
import { alertChanges } from '../guard/alert.ts'
import { blockSend } from '../guard/blocked.ts'
import { noToken, type ChallengeAnswer } from '../guard/challenge.ts'
import { findListing, withListing } from '../guard/listing.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { hashContexts } from '../model/context.ts'
import { emptyRecord, hashSubscriber, laneFor } from '../model/phone-record.ts'
import { isLiving } from '../model/request.ts'
import { closeRequest, readOwnRequest } from './lifecycle.ts'
import type { OtpNeeds } from './operations.ts'
import { chargeSend, otpRateLimit } from './rate-limits.ts'
import { senderOf } from './sender.ts'
import { buildRequest, chooseChannels, startDelivery, type SendInput } from './outgoing.ts'
import { invalidPhone, type Phone } from '../model/phone.ts'
import { hasPhoneBudgets, otherPlaces, readMovedPhone, withRequest } from './phones.ts'
import { createSendCompletion, type SendResult } from './complete-send.ts'
import { messageNeeds, readMessageFacts, sentChanges } from './message-facts.ts'
import { run, type Attempt } from './run.ts'
import { refusedSendTo } from './refused-sends.ts'
import {
  earlierRequest,
  readEarlierSend,
  refuseByChallenge,
  refuseByLimit,
  refuseSend,
  saveOutcome,
  type Outcome,
  type Replay,
} from './send-once.ts'
import { moved, type Moved } from './target.ts'
import { readTypedPhone } from './typed-phone.ts'
import { firstNames } from '../guard/facts.ts'
import type { GuardJudge } from '../guard/judge.ts'
import type { Change, Decision, Rows } from '../store/operation.ts'
import type { LoadedPhone } from '../store/phones.ts'

/** The façade that a code is made for, and the newest request of the phone when the façade looked. */
export type Origin = {
  facade: Facade
  newestRequest: string | null
  /** Request that the new one takes the place of: it is canceled if it can still be verified. */
  replaces?: string | undefined
}

/**
 * Sends codes. The operation reads top to bottom: the facts; then the decision, which checks the caller, charges the
 * limits, builds the message and asks the guard; then, once that is committed, the first attempt at delivery.
 */
export function createOtpSend(needs: OtpNeeds) {
  const { clock, newId, keys, plans, delivery, attempts } = needs
  const completeSend = createSendCompletion(needs)

  return {
    /**
     * Creates a code for a phone and sends it. Atomic: the request, its events, its message and its counters.
     *
     * @throws INVALID_PHONE_NUMBER
     * @throws UNAUTHENTICATED or FORBIDDEN when the application changed since its credentials were checked
     * @throws RATE_LIMITED (APP_RATE, PHONE_SEND_BUDGET); only the refusal was recorded
     * @throws IDEMPOTENCY_KEY_REUSED when the key was used with a different body
     * @throws CONFLICT (IDEMPOTENCY_IN_PROGRESS)
     * @throws DESTINATION_BLOCKED by the guard; the request has failed
     * @throws CHALLENGE_REQUIRED by the guard; there is no request
     * @throws DELIVERY_FAILED when no provider accepted the message and none will be tried again; the request
     *   has failed
     */
    async send(
      application: CallingApplication,
      input: SendInput,
      scope?: IdempotencyScope,
    ): Promise<SendResult> {
      const typed = readTypedPhone(needs, application, input)
      const phone = typed instanceof Promise ? await typed : typed
      const answer =
        input.challenge === undefined ? noToken : await needs.challenges.answer(application, input)
      return completeSend(application, scope, await decideSend(application, phone, input, scope, answer))
    },

    /**
     * Sends a code as `send`, for a façade.
     *
     * @returns `moved` if the phone got another request since `origin.newestRequest` was its newest
     */
    async sendFor(
      origin: Origin,
      application: CallingApplication,
      input: SendInput,
      scope?: IdempotencyScope,
    ): Promise<SendResult | Moved> {
      const phone = await readTypedPhone(needs, application, input)
      const outcome = await decideSend(application, phone, input, scope, undefined, origin)
      return outcome === moved ? moved : completeSend(application, scope, outcome)
    },
  }

  function decideSend(
    application: CallingApplication,
    phone: Phone,
    input: SendInput,
    scope: IdempotencyScope | undefined,
    answer: ChallengeAnswer,
  ): Promise<Outcome | Replay>
  function decideSend(
    application: CallingApplication,
    phone: Phone,
    input: SendInput,
    scope: IdempotencyScope | undefined,
    answer: undefined,
    origin: Origin,
  ): Promise<Outcome | Replay | Moved>
  function decideSend(
    application: CallingApplication,
    phone: Phone,
    input: SendInput,
    scope: IdempotencyScope | undefined,
    challenge: ChallengeAnswer | undefined,
    madeFor?: Origin,
  ): Promise<Outcome | Replay | Moved> {
    const { developerId, environment } = application
    const subscriber = { ...phone, developerId, environment }
    const { clientIp = null, deviceId = null } = input
    const codeSource = { id: newId('otp'), codeSalt: newCodeSalt() }
    const contexts = hashContexts(keys, developerId, { clientIp, deviceId })
    return run(needs, ({ guard, readPhone }) => ({
      needs() {
        const origin = {
          ...subscriber,
          clientIp,
          createdAt: clock.now(),
          resends: 0,
          provider: null,
          challenge,
        }
        const stranger = senderOf(emptyRecord(subscriber, phone.country), {
          contexts,
          createdAt: origin.createdAt,
        })
        const guardKeys = guard.keysToJudge(origin, stranger, origin.createdAt)
        return {
          application,
          answers: scope ? [scope] : [],
          ...(madeFor?.replaces !== undefined && { request: madeFor.replaces }),
          phone: hashSubscriber(keys, subscriber),
          guard: guardKeys && firstNames(guardKeys),
          limit: otpRateLimit(plans, application, 'send'),
          subscribers: application.id,
          subscribersOfDeveloper: guardKeys?.subjects && developerId,
          virtualPhone: phone.isVirtual ? phone.phone : undefined,
        }
      },

      further(rows) {
        const now = rows.now(clock)
        const loaded = readMovedPhone(rows, keys, subscriber)
        return {
          limit: otpRateLimit(plans, rows.caller(application), 'send'),
          messages: earlierRequest(rows, scope, now),
          ...messageNeeds(rows, guard, application, describeMessage(rows, guard, loaded, now), now),
          ...otherPlaces(rows, keys, subscriber),
        }
      },

      decide(rows): Decision<Outcome | Replay | Moved> {
        const facts = read(rows, guard, readPhone)
        const { now, caller, refusal, earlier, inboxOwnerId, loaded, channels, delivered } = facts
        if (refusal) return refuseSend(refusal)
        if (earlier) return isRejected(earlier) ? refuseSend(earlier) : { result: earlier, changes: [] }
        if (madeFor && loaded.record.newestRequest !== madeFor.newestRequest)
          return { result: moved, changes: [] }
        // Before the limits: invalid numbers are all refused alike.
        if (inboxOwnerId === undefined) return refuseSend(reject(invalidPhone()))
        const lane = laneFor(loaded.record, { clientIp, contexts }, now)
        const usage = { record: loaded.record, lane, isLimited: hasPhoneBudgets(subscriber) }
        const charged = chargeSend(needs.sendBudget(), facts.rate, usage, now)
        if (isRejected(charged)) return refuseByLimit(charged, refusedSendTo(phone, loaded.record))
        const { rate, record } = charged
        const { subscribers } = facts
        const origin = {
          contexts,
          lane: lane === 'stranger' ? ('stranger' as const) : ('known' as const),
          previousRequest: record.newestRequest,
        }
        const request = buildRequest(
          keys,
          { codeSource, application: caller, phone, origin, input, facade: madeFor?.facade, delivered },
          now,
        )
        const { verdict, changes: counts } = guard.judge(facts.guardFacts, facts.message, facts.sender)
        const phoneChange: Change = { kind: 'phone', slot: loaded, record: withRequest(record, request) }
        const guardChange: Change = { kind: 'guard', changes: counts }
        const alert = alertChanges(newId, request, verdict.alert, facts.alertSubscribers, now)
        // Nothing is sent, so the phone is not charged.
        const challenged =
          verdict.challenge === 'needed' &&
          refuseByChallenge(needs, verdict, now, {
            answer: challenge,
            rate,
            refusedSend: refusedSendTo(phone, loaded.record),
            changes: [...charged.changes, guardChange, ...alert],
          })
        if (challenged) return challenged
        const changes = [...charged.changes, phoneChange, guardChange, ...alert]
        if (verdict.blocked) {
          const blocked = blockSend(newId, request, verdict, subscribers, now)
          const all = [...changes, ...blocked.changes]
          return saveOutcome(refuseSend(blocked.result, rate, all, verdict.alert), scope, now)
        }
        if (facts.replaced && isLiving(facts.replaced, now)) {
          const closable = { request: facts.replaced, subscribers }
          changes.push(...closeRequest(newId, closable, { status: 'canceled' }, now).changes)
        }
        changes.push(
          { kind: 'request', request, isNew: true },
          ...attempts.enqueue(request, [], channels, now),
          countChange(request, { requests: 1, sent: 1 }, utcDay(now)),
          breakdownChange(request, newRequestCounts(request), now),
          ...sentChanges(
            newId,
            { ...facts, request, inboxOwnerId, isOverBudget: charged.isOverBudget, verdict },
            now,
          ),
        )
        const result = { replayed: false as const, rate, result: request, alert: verdict.alert }
        return saveOutcome({ result, changes }, scope, now)
      },
    }))

    function describeMessage(rows: Rows, guard: GuardJudge, { record }: LoadedPhone, now: number) {
      const routes = delivery.routesFor({ environment, appId: application.id, ...phone })
      const origin = { developerId, environment, clientIp, createdAt: now, resends: 0 }
      const listed = { appId: application.id, ...phone, clientIp }
      const listing = findListing(rows.listRules(application), listed, now)
      const channels = chooseChannels(routes, {
        ...input,
        refused: guard.refusedChannels({ ...phone, ...origin, provider: null, listing }),
      })
      const delivered = startDelivery(routes, channels, { channel: 'sms', provider: null })
      const appCountries = rows.caller(application).countries
      const { provider } = delivered
      const message = { ...phone, ...origin, provider, channels, listing, appCountries, challenge }
      const sender = withListing(senderOf(record, { contexts, createdAt: now }), listing)
      return { message, sender, channels, delivered }
    }

    function read(rows: Rows, guard: GuardJudge, readPhone: Attempt['readPhone']) {
      const now = rows.now(clock)
      const caller = rows.caller(application)
      const loaded = readPhone(rows, keys, subscriber)
      const message = describeMessage(rows, guard, loaded, now)
      return {
        ...readMessageFacts(needs, rows, guard, caller, message, now),
        now,
        caller,
        refusal: readRefusal(rows, application),
        earlier: readEarlierSend(rows, scope, now),
        replaced: madeFor?.replaces ? readOwnRequest(rows, application, madeFor.replaces) : undefined,
        inboxOwnerId: phone.isVirtual ? rows.virtualPhoneOwner(phone.phone) : developerId,
        loaded,
        channels: message.channels,
        delivered: message.delivered,
      }
    }
  }

  function newCodeSalt(): string {
    const salt = new Uint8Array(16)
    needs.random(salt)
    return salt.toBase64({ alphabet: 'base64url', omitPadding: true })
  }
}
