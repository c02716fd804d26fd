import { utcDay } from '../log/analytics.ts'
import { readRefusal } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import { toDestination, inboxProvider } from '../model/delivery.ts'
import { notFound } from '../model/errors.ts'
import { attachRate, isRejected, reject, type Rejected } from '../model/rejected.ts'
import { eventChange } from '../log/events.ts'
import { blockResend, blockSend, flaggedChanges } from '../guard/blocked.ts'
import { alertChange } from '../guard/alert.ts'
import { loadGuardFacts } from '../guard/facts.ts'
import type { GuardJudge, GuardVerdict } from '../guard/judge.ts'
import type { GuardedMessage } from '../guard/row-keys.ts'
import type { Sender } from '../model/guard.ts'
import { ReplayedError } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { hashContexts } from '../model/context.ts'
import { laneFor } from '../model/phone-record.ts'
import { deriveStoredCode, type StoredCodeSource } from '../model/code.ts'
import type { OtpNeeds } from './operations.ts'
import { chargeRate, chargeSend, otpRateLimit, readRate } from './rate-limits.ts'
import { senderOf } from './sender.ts'
import { readOwnRequest, refuseIfClosed } from './lifecycle.ts'
import {
  buildRequest,
  isTooSoon,
  resendChannels,
  resendsExhausted,
  resendTooSoon,
  startDelivery,
  toSentOtp,
  type SendInput,
  type SentOtp,
} from './outgoing.ts'
import {
  isExpired,
  requireReadablePhone,
  resendsMax,
  type Channel,
  type OtpRequest,
} from '../model/request.ts'
import { invalidPhone, parsePhone } from '../model/phone.ts'
import type { RateState } from '../model/rate-limit.ts'
import { hasPhoneBudgets, laneOf, withRequest } from './phones.ts'
import { run } from './run.ts'
import { readEarlierSend, refuseSend, saveOutcome, type Outcome, type Replay } from './send-once.ts'
import type { Change, Decision, RowReader, Subscriber } from '../store/operation.ts'

export type SendResult = SentOtp & {
  /** Only in `test` applications, whose messages are never sent. */
  code: string | undefined
  replayed: boolean
  rate: RateState | undefined
}

/**
 * Sends and resends codes. Each operation reads top to bottom: the facts; then the decision, which checks the caller,
 * charges the limits, builds the message and asks the guard; then, once that is committed, the first attempt at delivery.
 */
export function createOtpSend(needs: OtpNeeds) {
  const { store, clock, newId, keys, plans, delivery, attempts } = needs

  return {
    /**
     * Creates a code for a phone and sends it. Atomic: the request, its events, its message and its counters.
     *
     * @throws INVALID_PHONE_NUMBER
     * @throws UNAUTHENTICATED or FORBIDDEN when the application changed since its credentials were checked
     * @throws RATE_LIMITED (APP_RATE, PHONE_SEND_BUDGET); nothing was written
     * @throws IDEMPOTENCY_KEY_REUSED when the key was used with a different body
     * @throws CONFLICT (IDEMPOTENCY_IN_PROGRESS)
     * @throws DESTINATION_BLOCKED by the guard; the request has failed
     * @throws DELIVERY_FAILED when no provider accepted the message and none will be tried again; the request
     *   has failed
     */
    async send(
      application: CallingApplication,
      input: SendInput,
      scope?: IdempotencyScope,
    ): Promise<SendResult> {
      const phone = parsePhone(input.phone)
      const { developerId, environment } = application
      const subscriber = { ...phone, developerId, environment }
      const { clientIp = null, deviceId = null } = input
      const codeSource = { id: newId('otp'), codeSalt: newCodeSalt() }
      const outcome = await run(needs, ({ guard, readPhone }) => ({
        async read(rows) {
          const now = clock.now()
          const refusal = await readRefusal(rows, application)
          const earlier = await readEarlierSend(rows, scope, now)
          const inboxOwnerId = phone.isVirtual ? await rows.findVirtualPhoneOwner(phone.phone) : developerId
          const loaded = await readPhone(rows, keys, subscriber)
          const contexts = hashContexts(keys, developerId, { clientIp, deviceId })
          const routes = delivery.routesFor({ environment, appId: application.id, ...phone })
          const channels = input.channel ? [input.channel] : [...routes.channels]
          const delivered = startDelivery(routes, channels, { channel: 'sms', provider: null })
          const origin = { developerId, environment, clientIp, createdAt: now, resends: 0 }
          const message = { ...phone, ...origin, provider: delivered.provider }
          const sender = senderOf(loaded.record, { contexts, createdAt: now })
          const facts = await readSendFacts(rows, guard, application, { message, sender }, now)
          return { ...facts, now, refusal, earlier, inboxOwnerId, loaded, contexts, channels, delivered }
        },

        decide(facts): Decision<Outcome | Replay> {
          const { now, refusal, earlier, inboxOwnerId, loaded, contexts, channels, delivered } = facts
          if (earlier) return isRejected(earlier) ? refuseSend(earlier) : { result: earlier, changes: [] }
          if (refusal) return refuseSend(refusal)
          // Before the limits: invalid numbers are all refused alike.
          if (inboxOwnerId === undefined) return refuseSend(reject(invalidPhone()))
          const lane = laneFor(loaded.record, contexts, now)
          const usage = { record: loaded.record, lane, isLimited: hasPhoneBudgets(subscriber) }
          const charged = chargeSend(needs.sendBudget(), facts.rate, usage, now)
          if (isRejected(charged)) return refuseSend(charged)
          const { rate, record } = charged
          const { subscribers } = facts
          const origin = { contexts, lane, previousRequest: record.newestRequest }
          const request = buildRequest(
            keys,
            { codeSource, application, phone, origin, input, delivered },
            now,
          )
          const { verdict, changes: counts } = guard.judge(facts.guardFacts, facts.message, facts.sender)
          const phoneChange: Change = { kind: 'phone', slot: loaded, record: withRequest(record, request) }
          const guardChange: Change = { kind: 'guard', changes: counts }
          const changes = [...charged.changes, phoneChange, guardChange]
          if (verdict.blocked) {
            const blocked = blockSend(newId, request, verdict, subscribers, now)
            return saveOutcome(refuseSend(blocked.result, rate, [...changes, ...blocked.changes]), scope, now)
          }
          changes.push(
            { kind: 'request', request, isNew: true },
            ...attempts.enqueue(request, [], channels, now),
            { kind: 'counts', developerId, day: utcDay(now), counts: { requests: 1, sent: 1 } },
            ...sentChanges(
              { ...facts, request, inboxOwnerId, isOverBudget: charged.isOverBudget, verdict },
              now,
            ),
          )
          const result = { replayed: false as const, rate, result: request, alert: verdict.alert }
          return saveOutcome({ result, changes }, scope, now)
        },
      }))
      return completeSend(application, scope, outcome)
    },

    /**
     * Sends the same code once more: same request, attempts and expiry. Counts as a send.
     *
     * @throws as for a send, except that the request stays pending when the guard blocks the message
     * @throws NOT_FOUND no such request of this application
     * @throws ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when the request is closed
     * @throws CONFLICT (RESENDS_EXHAUSTED)
     * @throws RATE_LIMITED (RESEND_TOO_SOON); nothing was written
     */
    async resend(
      application: CallingApplication,
      input: { requestId: string; channel?: Channel | undefined },
      scope?: IdempotencyScope,
    ): Promise<SendResult> {
      const outcome = await run(needs, ({ guard, readPhone }) => ({
        async read(rows) {
          const now = clock.now()
          const refusal = await readRefusal(rows, application)
          const earlier = await readEarlierSend(rows, scope, now)
          const existing = await readOwnRequest(rows, application, input.requestId)
          if (existing?.status !== 'pending' || isExpired(existing, now)) {
            const rate = await readRate(rows, otpRateLimit(plans, application, 'send'), now)
            const subscribers = existing ? await rows.subscribers(application.id) : []
            const closed = existing && { request: existing, subscribers }
            return { isPending: false as const, now, refusal, earlier, rate, closed }
          }
          requireReadablePhone(existing)
          const messages = await rows.messages(existing.id)
          const destination = toDestination(existing)
          const { phone, isVirtual } = destination
          const inboxOwnerId = isVirtual ? await rows.findVirtualPhoneOwner(phone) : application.developerId
          const loaded = await readPhone(rows, keys, existing)
          const message = { ...existing, costlyType: parsePhone(phone).costlyType }
          const sender = senderOf(loaded.record, existing)
          const facts = await readSendFacts(rows, guard, application, { message, sender }, now)
          const pending = { ...facts, now, refusal, earlier, messages, destination, inboxOwnerId, loaded }
          return { isPending: true as const, ...pending, request: existing }
        },

        decide(facts): Decision<Outcome | Replay> {
          const { now, refusal, earlier } = facts
          if (earlier) return isRejected(earlier) ? refuseSend(earlier) : { result: earlier, changes: [] }
          if (refusal) return refuseSend(refusal)
          if (!facts.isPending) {
            // Charged, so that ids cannot be probed for free.
            const charged = chargeRate(facts.rate, now)
            if (isRejected(charged)) return refuseSend(charged)
            const closed = facts.closed && refuseIfClosed(newId, facts.closed, now)
            const changes = [...charged.changes, ...(closed?.changes ?? [])]
            return refuseSend(closed?.result ?? reject(notFound()), charged.rate, changes)
          }
          const { request, loaded, destination, inboxOwnerId, messages, subscribers } = facts
          const usage = {
            record: loaded.record,
            lane: laneOf(request),
            isLimited: hasPhoneBudgets(request),
          }
          const charged = chargeSend(needs.sendBudget(), facts.rate, usage, now)
          if (isRejected(charged)) return refuseSend(charged)
          const { rate } = charged
          const phoneChange: Change = { kind: 'phone', slot: loaded, record: charged.record }
          const chargeChanges = [...charged.changes, phoneChange]
          // Both checked before the guard, which counts every message that it lets pass.
          if (request.resends >= resendsMax)
            return refuseSend(reject(resendsExhausted()), rate, chargeChanges)
          if (isTooSoon(request, now)) return refuseSend(reject(resendTooSoon(request, now)))
          if (inboxOwnerId === undefined) return refuseSend(reject(invalidPhone()))
          const { verdict, changes: counts } = guard.judge(facts.guardFacts, facts.message, facts.sender)
          const changes: Change[] = [...chargeChanges, { kind: 'guard', changes: counts }]
          if (verdict.blocked) {
            const blocked = blockResend(newId, request, verdict, subscribers, now)
            return saveOutcome(refuseSend(blocked.result, rate, [...changes, ...blocked.changes]), scope, now)
          }
          const routes = delivery.routesFor(destination)
          const channels = resendChannels(routes, request, input.channel)
          const resent: OtpRequest = {
            ...request,
            ...startDelivery(routes, channels, request),
            resends: request.resends + 1,
            sentAt: now,
            updatedAt: now,
          }
          const { developerId } = resent
          changes.push(
            { kind: 'request', request: resent, isNew: false },
            ...attempts.enqueue(resent, messages, channels, now),
            { kind: 'counts', developerId, day: utcDay(now), counts: { sent: 1 } },
            ...sentChanges(
              {
                ...facts,
                request: resent,
                inboxOwnerId,
                isOverBudget: charged.isOverBudget,
                verdict,
                detail: 'resend',
              },
              now,
            ),
          )
          const result = { replayed: false as const, rate, result: resent, alert: verdict.alert }
          return saveOutcome({ result, changes }, scope, now)
        },
      }))
      return completeSend(application, scope, outcome)
    },
  }

  /** Reads what the decisions about a message of either operation need. */
  async function readSendFacts(
    rows: RowReader,
    guard: GuardJudge,
    application: CallingApplication,
    { message, sender }: { message: GuardedMessage; sender: Sender },
    now: number,
  ) {
    const guardFacts = await loadGuardFacts(rows.guard, guard.keysToJudge(message, sender, now))
    return {
      message,
      sender,
      guardFacts,
      rate: await readRate(rows, otpRateLimit(plans, application, 'send'), now),
      subscribers: await rows.subscribers(application.id),
      // An alert goes to all of them; one can be raised only where the guard counts.
      alertSubscribers: guardFacts ? await rows.subscribersOfDeveloper(application.developerId) : [],
    }
  }

  /** The log entries of a message that is sent and, if no provider gets it, its place in an inbox. */
  function sentChanges(
    sent: {
      request: OtpRequest
      subscribers: readonly Subscriber[]
      alertSubscribers: readonly Subscriber[]
      inboxOwnerId: string
      isOverBudget: boolean
      verdict: GuardVerdict
      detail?: 'resend'
    },
    now: number,
  ): Change[] {
    const { request, subscribers, inboxOwnerId, verdict, detail } = sent
    const requestVisible = inboxOwnerId === request.developerId ? 1 : 0
    const inbox =
      request.provider === inboxProvider ? { developerId: inboxOwnerId, requestVisible } : undefined
    return [
      ...(verdict.alert ? [alertChange(newId, request, verdict.alert, sent.alertSubscribers, now)] : []),
      ...flaggedChanges(newId, request, sent.isOverBudget ? ['PHONE_SEND_BUDGET'] : [], subscribers, now),
      ...flaggedChanges(newId, request, verdict.violatedRules, subscribers, now),
      eventChange(newId, 'otp.sent', request, subscribers, now, { detail, inbox }),
    ]
  }

  /**
   * Turns the committed outcome into the caller's result; makes the first attempt of a new message. Runs after
   * the commit, which makes sure that every code on its way can be verified.
   *
   * @throws the refusal of the transaction, of the attempt (DELIVERY_FAILED) or of the earlier call
   */
  async function completeSend(
    application: CallingApplication,
    scope: IdempotencyScope | undefined,
    outcome: Outcome | Replay,
  ): Promise<SendResult> {
    if (outcome.replayed) return replayEarlier(application, outcome.result)
    const { result, rate, alert } = outcome
    if (alert) needs.guard.onAlert(alert)
    if (isRejected(result)) throw attachRate(result, rate)
    const sent = toSentOtp(result)
    const failed = await makeFirstAttempt(sent, scope)
    if (failed) throw attachRate(failed, rate)
    return { ...sent, replayed: false, rate, code: codeToShow(application, result) }
  }

  /** Repeats the result of an earlier call with the same idempotency key. @throws that call's refusal */
  async function replayEarlier(
    application: CallingApplication,
    sent: SentOtp | Rejected,
  ): Promise<SendResult> {
    if (isRejected(sent)) throw new ReplayedError(sent.rejected)
    const code = await replayedCode(application, sent.requestId)
    return { ...sent, replayed: true, rate: undefined, code }
  }

  /** @returns the refusal if the message failed for good */
  async function makeFirstAttempt(sent: SentOtp, scope: IdempotencyScope | undefined) {
    const { requestId, message } = sent
    if (message === null) return undefined
    return attempts.makeFirstAttempt({ requestId, message }, { scope, value: sent })
  }

  function codeToShow(application: CallingApplication, request: StoredCodeSource): string | undefined {
    return application.environment === 'test' ? deriveStoredCode(keys, request) : undefined
  }

  /** Derives the code again, since codes are never stored. */
  async function replayedCode(application: CallingApplication, requestId: string) {
    if (application.environment !== 'test') return undefined
    const request = await store.read.otpRequests.find(requestId)
    return request && codeToShow(application, request)
  }

  function newCodeSalt(): string {
    const salt = new Uint8Array(16)
    needs.random(salt)
    return salt.toBase64({ alphabet: 'base64url', omitPadding: true })
  }
}
