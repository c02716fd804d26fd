import type { TestApp } from '../helpers/webhook-client.ts'

/** What a caller knows of a request: what he was told, and what he asked for without hearing the outcome. */
export type TrackedRequest = {
  id: string
  app: TestApp
  code: string
  /** Wrong attempts that were answered as counted. */
  wrong: number
  /** Attempts without an answer: each may have been counted or not. */
  unanswered: number
  /** As it was answered, by a verification or by the refusal of another; undefined before. */
  verifiedAt: string | undefined
  /** A verification was answered as done. */
  isVerified: boolean
  /** A verification had no answer. */
  maybeVerified: boolean
  /** The highest number of attempts that the database has shown. */
  attemptsSeen: number
}

export type Ledger = ReturnType<typeof createLedger>

/** One acknowledgement. `answerId` names the answer that it came with, `at` the time in it. */
export type Acknowledged = { kind: 'sent' | 'verified' | 'wrong'; answerId: string; id: string; at?: string }

/**
 * The memory of an outside observer: every acknowledgement that a caller has heard, across restarts of the server.
 *
 * @param onAcknowledged told of each
 */
export function createLedger(onAcknowledged: (acknowledged: Acknowledged) => void = () => {}) {
  const requests = new Map<string, TrackedRequest>()
  /** Changed since the last check. */
  let touched = new Set<TrackedRequest>()
  /** To be verified again once the server is back: nobody knows whether they are. */
  const unconfirmed: TrackedRequest[] = []
  const violations: string[] = []
  const unexpectedAnswers = new Map<string, number>()
  const count = { acknowledged: 0, sent: 0, verified: 0, wrong: 0, refusedAgain: 0, unanswered: 0 }

  return {
    requests,
    unconfirmed,
    violations,
    /** Answers that are neither an acknowledgement nor a refusal that was asked for, by status and code. */
    unexpectedAnswers,
    count,

    sent(answerId: string, id: string, app: TestApp, code: string): TrackedRequest {
      if (requests.has(id)) violations.push(`${id} was given to two requests`)
      const tracked: TrackedRequest = {
        id,
        app,
        code,
        wrong: 0,
        unanswered: 0,
        verifiedAt: undefined,
        isVerified: false,
        maybeVerified: false,
        attemptsSeen: 0,
      }
      requests.set(id, tracked)
      touched.add(tracked)
      onAcknowledged({ kind: 'sent', answerId, id })
      count.sent++
      count.acknowledged++
      return tracked
    },
    verified(answerId: string, tracked: TrackedRequest, verifiedAt: string) {
      if (tracked.isVerified) violations.push(`${tracked.id} was verified twice`)
      // Of two calls at once the refused one may be heard first.
      if (tracked.verifiedAt !== undefined && tracked.verifiedAt !== verifiedAt)
        violations.push(`${tracked.id} has another verifiedAt`)
      tracked.isVerified = true
      tracked.verifiedAt = verifiedAt
      touched.add(tracked)
      onAcknowledged({ kind: 'verified', answerId, id: tracked.id, at: verifiedAt })
      count.verified++
      count.acknowledged++
    },
    /** It was told that the request had been verified before. */
    alreadyVerified(tracked: TrackedRequest, verifiedAt: string) {
      if (tracked.verifiedAt === undefined && !tracked.maybeVerified)
        violations.push(`${tracked.id} is verified by nobody`)
      if (tracked.verifiedAt !== undefined && tracked.verifiedAt !== verifiedAt)
        violations.push(`${tracked.id} has another verifiedAt`)
      tracked.verifiedAt = verifiedAt
      touched.add(tracked)
      count.refusedAgain++
    },
    wrong(answerId: string, tracked: TrackedRequest) {
      tracked.wrong++
      touched.add(tracked)
      onAcknowledged({ kind: 'wrong', answerId, id: tracked.id })
      count.wrong++
      count.acknowledged++
    },
    /** An attempt had no answer, or one that leaves open whether it counts. */
    unanswered(tracked: TrackedRequest, isRightCode: boolean) {
      tracked.unanswered++
      tracked.maybeVerified ||= isRightCode
      touched.add(tracked)
      count.unanswered++
      if (isRightCode) unconfirmed.push(tracked)
    },
    unexpected(kind: string) {
      unexpectedAnswers.set(kind, (unexpectedAnswers.get(kind) ?? 0) + 1)
    },
    takeTouched(): TrackedRequest[] {
      const list = [...touched]
      touched = new Set()
      return list
    },
  }
}
