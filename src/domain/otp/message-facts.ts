import type { CallingApplication } from '../model/application.ts'
import { inboxProvider } from '../model/delivery.ts'
import { eventChange } from '../log/events.ts'
import { flaggedChanges } from '../guard/blocked.ts'
import { namesOf, readGuardFacts } from '../guard/facts.ts'
import type { GuardJudge, GuardVerdict } from '../guard/judge.ts'
import type { GuardedMessage } from '../guard/row-keys.ts'
import type { Sender } from '../model/guard.ts'
import type { NewId } from '../model/ids.ts'
import type { OtpNeeds } from './operations.ts'
import { otpRateLimit, readRate } from './rate-limits.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Change, Needs, Rows, Subscriber } from '../store/operation.ts'

/** Reads what the decisions about a message of either operation need. */
export function readMessageFacts(
  { plans }: Pick<OtpNeeds, 'plans'>,
  rows: Rows,
  guard: GuardJudge,
  application: CallingApplication,
  { message, sender }: { message: GuardedMessage; sender: Sender },
  now: number,
) {
  const guardFacts = readGuardFacts(rows.guard, guard.keysToJudge(message, sender, now))
  return {
    message,
    sender,
    guardFacts,
    rate: readRate(rows, otpRateLimit(plans, application, 'send'), now),
    subscribers: rows.subscribers(application.id),
    // An alert goes to all of them; one can be raised only where the guard counts.
    alertSubscribers: guardFacts?.keys.subjects ? rows.subscribersOfDeveloper(application.developerId) : [],
  }
}

/** Names the rows of `readMessageFacts`. */
export function messageNeeds(
  rows: Rows,
  guard: GuardJudge,
  application: CallingApplication,
  { message, sender }: { message: GuardedMessage; sender: Sender },
  now: number,
): Needs {
  const guardKeys = guard.keysToJudge(message, sender, now)
  return {
    guard: guardKeys && namesOf(rows.guard, guardKeys),
    subscribers: application.id,
    subscribersOfDeveloper: guardKeys?.subjects && application.developerId,
  }
}

/** The log entries of a message that is sent and, if no provider gets it, its place in an inbox. */
export function sentChanges(
  newId: NewId,
  sent: {
    request: OtpRequest
    subscribers: readonly Subscriber[]
    inboxOwnerId: string
    isOverBudget: boolean
    verdict: GuardVerdict
    detail?: 'resend'
  },
  now: number,
): Change[] {
  const { request, subscribers, inboxOwnerId, verdict, detail } = sent
  const requestVisible = inboxOwnerId === request.developerId ? 1 : 0
  const inbox = request.provider === inboxProvider ? { developerId: inboxOwnerId, requestVisible } : undefined
  return [
    ...flaggedChanges(newId, request, sent.isOverBudget ? ['PHONE_SEND_BUDGET'] : [], subscribers, now),
    ...flaggedChanges(newId, request, flags(verdict), subscribers, now),
    eventChange(newId, 'otp.sent', request, subscribers, now, { detail, inbox }),
  ]
}

const flags = ({ violatedRules, challenge }: GuardVerdict): readonly string[] =>
  challenge === 'passed' ? [...violatedRules, 'CHALLENGE_PASSED'] : violatedRules
