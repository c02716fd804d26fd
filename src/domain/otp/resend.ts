import { utcDay } from '../log/analytics.ts'
import { readRefusal } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import { toDestination, inboxProvider } from '../model/delivery.ts'
import { isRejected, reject } from '../model/rejected.ts'
import { breakdownChange, countChange } from '../log/counts.ts'
import { alertChanges } from '../guard/alert.ts'
import { blockResend } from '../guard/blocked.ts'
import { noToken, type ChallengeAnswer } from '../guard/challenge.ts'
import { findListing, withListing } from '../guard/listing.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import type { OtpNeeds } from './operations.ts'
import { chargeRate, chargeSend, otpRateLimit, readRate } from './rate-limits.ts'
import { senderOf } from './sender.ts'
import { readOwnRequest, refuseIfClosed } from './lifecycle.ts'
import {
  isTooSoon,
  resendChannels,
  resendsExhausted,
  resendTooSoon,
  startDelivery,
  type ChannelChoice,
} from './outgoing.ts'
import {
  isLiving,
  requireReadablePhone,
  resendsMax,
  type Channel,
  type OtpRequest,
} from '../model/request.ts'
import { invalidPhone, isVirtualPhone, parsePhone } from '../model/phone.ts'
import { hasPhoneBudgets, laneOf, otherPlaces, readMovedPhone } from './phones.ts'
import { createSendCompletion, type SendResult } from './complete-send.ts'
import { messageNeeds, readMessageFacts, sentChanges } from './message-facts.ts'
import { run, type Attempt } from './run.ts'
import { deliveryFailed } from './settle.ts'
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
import { moved, onTarget, requestNotFound, type FoundRequest, type Moved, type OtpTarget } from './target.ts'
import type { GuardJudge } from '../guard/judge.ts'
import { hashSubscriber } from '../model/phone-record.ts'
import type { Change, Decision, Rows } from '../store/operation.ts'
import type { LoadedPhone } from '../store/phones.ts'

/** Sends codes once more. */
export function createOtpResend(needs: OtpNeeds) {
  const { clock, newId, keys, plans, delivery, attempts } = needs
  const completeSend = createSendCompletion(needs)

  return {
    /**
     * Sends the same code once more: same request, attempts and expiry. Counts as a send.
     *
     * @throws as for a send, except that the request stays pending when the guard blocks the message
     * @throws NOT_FOUND no such request of this application
     * @throws ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when the request is closed
     * @throws CONFLICT (RESENDS_EXHAUSTED)
     * @throws RATE_LIMITED (RESEND_TOO_SOON), DELIVERY_FAILED (NO_ROUTE); nothing was written
     */
    async resend(
      application: CallingApplication,
      input: OtpTarget & { channel?: Channel | undefined; challenge?: string | undefined },
      scope?: IdempotencyScope,
    ): Promise<SendResult> {
      const { channel, challenge, ...target } = input
      const answer =
        challenge === undefined ? noToken : await needs.challenges.answer(application, { challenge })
      const outcome = await onTarget(needs, application, target, (found) =>
        decideResend(found, application, { channel, mustWait: true, answer }, scope),
      )
      return completeSend(application, scope, outcome)
    },

    /**
     * Sends the same code once more as `resend`, for a façade: no wait between messages.
     *
     * @param found a living request
     * @returns `moved` if the request has ended since
     */
    async resendFor(
      found: FoundRequest,
      application: CallingApplication,
      choice: ChannelChoice,
      scope?: IdempotencyScope,
    ): Promise<SendResult | Moved> {
      const outcome = await decideResend(found, application, choice, scope)
      return outcome === moved ? moved : completeSend(application, scope, outcome)
    },
  }

  /**
   * @param choice.mustWait whether a message must not follow another too soon
   * @param choice.answer undefined for a façade, which cannot show challenges
   */
  async function decideResend(
    found: FoundRequest,
    application: CallingApplication,
    choice: ChannelChoice & { mustWait?: boolean; answer?: ChallengeAnswer },
    scope: IdempotencyScope | undefined,
  ): Promise<Outcome | Replay | Moved> {
    return run(needs, ({ guard, readPhone }) => ({
      needs: () => ({ application, answers: scope ? [scope] : [], request: found.requestId }),

      further(rows) {
        const now = rows.now(clock)
        const limit = otpRateLimit(plans, rows.caller(application), 'send')
        const messages = earlierRequest(rows, scope, now)
        const existing = readOwnRequest(rows, application, found.requestId)
        if (!existing) return { limit, messages }
        requireReadablePhone(existing)
        const { message, sender } = describeMessage(rows, existing, readMovedPhone(rows, keys, existing), now)
        return {
          limit,
          messages: [existing.id, ...messages],
          phone: hashSubscriber(keys, existing),
          ...messageNeeds(rows, guard, application, { message, sender }, now),
          virtualPhone: isVirtualPhone(existing.phone) ? existing.phone : undefined,
          ...otherPlaces(rows, keys, existing),
        }
      },

      decide(rows): Decision<Outcome | Replay | Moved> {
        const facts = read(rows, guard, readPhone)
        const { now, refusal, earlier } = facts
        if (refusal) return refuseSend(refusal)
        if (earlier) return isRejected(earlier) ? refuseSend(earlier) : { result: earlier, changes: [] }
        if (!facts.isPending) {
          if (found.isLiving) return { result: moved, changes: [] }
          // Charged, so that ids cannot be probed for free.
          const charged = chargeRate(facts.rate, now)
          if (isRejected(charged)) return refuseSend(charged)
          const closed = facts.closed && refuseIfClosed(newId, facts.closed, now)
          const changes = [...charged.changes, ...(closed?.changes ?? [])]
          return refuseSend(closed?.result ?? reject(requestNotFound(found)), charged.rate, changes)
        }
        const { request, loaded, destination, inboxOwnerId, messages, subscribers } = facts
        const usage = {
          record: loaded.record,
          lane: laneOf(loaded.record, request),
          isLimited: hasPhoneBudgets(request),
        }
        const charged = chargeSend(needs.sendBudget(), facts.rate, usage, now)
        if (isRejected(charged))
          return refuseByLimit(charged, { phone: request.phone, requestId: request.id })
        const { rate } = charged
        const phoneChange: Change = { kind: 'phone', slot: loaded, record: charged.record }
        const chargeChanges = [...charged.changes, phoneChange]
        // Both checked before the guard, which counts every message that it lets pass.
        if (request.resends >= resendsMax) return refuseSend(reject(resendsExhausted()), rate, chargeChanges)
        if (choice.mustWait && isTooSoon(request, now)) return refuseSend(reject(resendTooSoon(request, now)))
        if (inboxOwnerId === undefined) return refuseSend(reject(invalidPhone()))
        const { verdict, changes: counts } = guard.judge(facts.guardFacts, facts.message, facts.sender)
        const guardChanges: Change[] = [
          { kind: 'guard', changes: counts },
          ...alertChanges(newId, request, verdict.alert, facts.alertSubscribers, now),
        ]
        const challenged =
          verdict.challenge === 'needed' &&
          refuseByChallenge(needs, verdict, now, {
            answer: choice.answer,
            rate,
            refusedSend: { phone: request.phone, requestId: request.id },
            changes: [...charged.changes, ...guardChanges],
          })
        if (challenged) return challenged
        const changes = [...chargeChanges, ...guardChanges]
        if (verdict.blocked) {
          const blocked = blockResend(newId, request, verdict, subscribers, now)
          const all = [...changes, ...blocked.changes]
          return saveOutcome(refuseSend(blocked.result, rate, all, verdict.alert), scope, now)
        }
        const routes = delivery.routesFor(destination)
        const channels = resendChannels(routes, request, { ...choice, refused: facts.refused })
        if (routes.candidatesFor(channels).length === 0)
          return refuseSend(
            deliveryFailed({ requestId: request.id }, 'no_route', { channels, country: request.country }),
          )
        const delivered = startDelivery(routes, channels, request)
        const { compat } = request
        const resent: OtpRequest = {
          ...request,
          ...delivered,
          compat: compat && {
            ...compat,
            messages: [...compat.messages, { channel: delivered.channel, sentAt: now }],
          },
          resends: request.resends + 1,
          sentAt: now,
          updatedAt: now,
        }
        changes.push(
          { kind: 'request', request: resent, isNew: false },
          ...attempts.enqueue(resent, messages, channels, now),
          countChange(resent, { sent: 1 }, utcDay(now)),
          ...(resent.provider === inboxProvider ? [breakdownChange(resent, { sent: 1 }, now)] : []),
          ...sentChanges(
            newId,
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

    function describeMessage(rows: Rows, existing: OtpRequest, { record }: LoadedPhone, now: number) {
      const listing = findListing(rows.listRules(application), existing, now)
      const { numberType } = parsePhone(existing.phone)
      const channels = [choice.channel ?? existing.channel]
      const appCountries = rows.caller(application).countries
      const message = { ...existing, numberType, channels, listing, appCountries, challenge: choice.answer }
      return { message, sender: withListing(senderOf(record, existing), listing) }
    }

    function read(rows: Rows, guard: GuardJudge, readPhone: Attempt['readPhone']) {
      const now = rows.now(clock)
      const refusal = readRefusal(rows, application)
      const caller = rows.caller(application)
      const earlier = readEarlierSend(rows, scope, now)
      const existing = readOwnRequest(rows, application, found.requestId)
      if (!existing || !isLiving(existing, now)) {
        const rate = readRate(rows, otpRateLimit(plans, caller, 'send'), now)
        const subscribers = existing ? rows.subscribers(application.id) : []
        const closed = existing && { request: existing, subscribers }
        return { isPending: false as const, now, refusal, earlier, rate, closed }
      }
      requireReadablePhone(existing)
      const destination = toDestination(existing)
      const { phone, isVirtual } = destination
      const loaded = readPhone(rows, keys, existing)
      const { message, sender } = describeMessage(rows, existing, loaded, now)
      const facts = readMessageFacts(needs, rows, guard, caller, { message, sender }, now)
      return {
        ...facts,
        isPending: true as const,
        refused: guard.refusedChannels(message),
        now,
        refusal,
        earlier,
        messages: rows.messages(existing.id),
        destination,
        inboxOwnerId: isVirtual ? rows.virtualPhoneOwner(phone) : application.developerId,
        loaded,
        request: existing,
      }
    }
  }
}
