import { alertChange } from '../guard/alert.ts'
import type { GuardVerdict } from '../guard/judge.ts'
import { findListing, withListing } from '../guard/listing.ts'
import { firstNames, namesOf, type CountedMessage, type GuardedMessage } from '../guard/row-keys.ts'
import { eventChange } from '../log/changes.ts'
import type { CallingApplication } from '../model/application.ts'
import { inboxProvider } from '../model/delivery.ts'
import type { Listing } from '../model/list-rule.ts'
import type { Sender } from '../model/guard.ts'
import type { NewId } from '../model/ids.ts'
import { emptyRecord, isKnownPhone, type PhoneRecord } from '../model/phone-record.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Change, NamedRows, Rows, EventSubscriber } from '../store/operation.ts'
import type { OtpNeeds } from './needs.ts'

/**
 * Says what was known about the end user behind a request when it was sent, because the guard counted its messages by that.
 *
 * @param record without a verification of this request
 */
export const senderOf = (
  record: PhoneRecord,
  { contexts, createdAt }: Pick<OtpRequest, 'contexts' | 'createdAt'>,
): Sender => ({
  isKnownPhone:
    isKnownPhone(record, createdAt) && (record.identity?.firstVerifiedAt ?? createdAt) < createdAt,
  contexts,
  sentAt: record.lastSentAt,
  verifiedAt: record.identity?.lastVerifiedAt ?? 0,
  verifiedFrom: record.contexts,
})

/** Says what is known about the end user behind a request, with the verdict of the developer's rules at a time. */
export function readSender(
  rows: Pick<Rows, 'listRules'>,
  application: Pick<CallingApplication, 'id' | 'developerId'>,
  record: PhoneRecord,
  request: OtpRequest,
  now: number,
): { listing: Listing; sender: Sender } {
  const listing = findListing(rows.listRules(application), request, now)
  return { listing, sender: withListing(senderOf(record, request), listing) }
}

/** A message as the guard judges it, and who is behind it. */
export type JudgedMessage = { message: GuardedMessage; sender: Sender }

/** Says what is known about the end user behind a message before the record of the phone is read: nothing but the contexts. */
export const strangerOf = (message: CountedMessage, contexts: readonly string[]): Sender =>
  senderOf(emptyRecord(message), { contexts, createdAt: message.createdAt })

/**
 * Names the rows of `judgeMessage` before the record of the phone is read: those of a stranger. Each call that changes counts
 * names them first, so that they are locked together and in one order: calls that lock some later wait for each other in a ring.
 */
export function nameStrangerRows(
  { guard }: Pick<OtpNeeds, 'guard'>,
  message: GuardedMessage,
  contexts: readonly string[],
): NamedRows {
  const keys = guard.keysToJudge(message, strangerOf(message, contexts), message.createdAt)
  return {
    guard: keys && firstNames(keys),
    subscribersOfDeveloper: (keys?.subjects ?? keys?.relay) && message.developerId,
  }
}

/** Names the rows of `judgeMessage`. */
export function nameJudgeRows(
  { guard }: Pick<OtpNeeds, 'guard'>,
  rows: Rows,
  { message, sender }: JudgedMessage,
  now: number,
): NamedRows {
  const keys = guard.keysToJudge(message, sender, now)
  return {
    guard: keys && namesOf(rows.guard, keys, now),
    subscribersOfDeveloper: (keys?.subjects ?? keys?.relay) && message.developerId,
  }
}

/** A verdict, with the changes of the guard's counts, and the alert that it raises. */
export type GuardJudgement = { verdict: GuardVerdict; guardChanges: Change[] }

/** Lets the guard judge a message. */
export function judgeMessage(
  { guard, newId }: Pick<OtpNeeds, 'guard' | 'newId'>,
  rows: Rows,
  appId: string,
  { message, sender }: JudgedMessage,
  now: number,
): GuardJudgement {
  const keys = guard.keysToJudge(message, sender, now)
  if (!keys) return { verdict: { blocked: false, violatedRules: [] }, guardChanges: [] }
  const { verdict, changes } = guard.judge(rows.guard, keys, message, sender, now)
  const guardChanges: Change[] = [{ kind: 'guard', changes }]
  const { developerId } = message
  // An alert goes to the endpoints of all applications.
  if (verdict.alert) {
    const endpoints = rows.subscribersOfDeveloper(developerId)
    guardChanges.push(alertChange(newId, { developerId, appId }, verdict.alert, endpoints, now))
  }
  return { verdict, guardChanges }
}

/**
 * Records a queued message, before any provider is asked to send it: its log entries and, if none gets it, its copy in an
 * inbox.
 */
export function sentChanges(
  newId: NewId,
  sent: {
    request: OtpRequest
    subscribers: readonly EventSubscriber[]
    inboxOwnerId: string
    isOverBudget: boolean
    verdict: GuardVerdict
    detail?: 'resend'
  },
  now: number,
): Change[] {
  const { request, subscribers, inboxOwnerId, verdict, detail } = sent
  const { violatedRules, challenge } = verdict
  const requestVisible = inboxOwnerId === request.developerId ? 1 : 0
  const inbox = request.provider === inboxProvider ? { developerId: inboxOwnerId, requestVisible } : undefined
  const flagged = (rules: readonly string[]) =>
    eventChange(newId, 'guard.flagged', request, subscribers, now, { detail: rules.join(' ') })
  const changes: Change[] = []
  if (sent.isOverBudget) changes.push(flagged(['PHONE_SEND_BUDGET']))
  // Sent although it violates rules: in mode `monitor`, or with a passed challenge.
  if (challenge === 'passed') changes.push(flagged([...violatedRules, 'CHALLENGE_PASSED']))
  else if (violatedRules.length > 0) changes.push(flagged(violatedRules))
  changes.push(eventChange(newId, 'otp.sent', request, subscribers, now, { detail, inbox }))
  return changes
}
