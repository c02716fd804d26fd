import type { TestApp } from '../helpers/webhook-client.ts'

/** A caller's knowledge of a request: acknowledged outcomes, and calls whose outcome is unknown. */
export type TrackedRequest = {
  id: string
  app: TestApp
  code: string
  /** Wrong attempts that were acknowledged. */
  wrong: number
  /** Attempts without a response. Each may have been counted or not. */
  unanswered: number
  /** As reported by a verification or by the refusal of a later one. Undefined until then. */
  verifiedAt: string | undefined
  /** True once a verification was acknowledged. */
  isVerified: boolean
  /** True once a verification had no response. */
  maybeVerified: boolean
  /** Highest number of attempts seen in the database. */
  attemptsSeen: number
}

export type Ledger = ReturnType<typeof createLedger>

/** An acknowledgement. `answerId` is the id of the response, `at` the time in it. */
export type Acknowledged = { kind: 'sent' | 'verified' | 'wrong'; answerId: string; id: string; at?: string }

/**
 * Creates the record of an outside observer: every acknowledgement that a caller has received, across restarts.
 *
 * @param onAcknowledged called with each
 */
export function createLedger(onAcknowledged: (acknowledged: Acknowledged) => void = () => {}) {
  const requests = new Map<string, TrackedRequest>()
  /** Requests that changed since the last check. */
  let touched = new Set<TrackedRequest>()
  /** Requests to verify again after the restart, because it is unknown whether they are verified. */
  const unconfirmed: TrackedRequest[] = []
  const violations: string[] = []
  const unexpectedAnswers = new Map<string, number>()
  const count = { acknowledged: 0, sent: 0, verified: 0, wrong: 0, refusedAgain: 0, unanswered: 0 }

  return {
    requests,
    unconfirmed,
    violations,
    /** Counts responses that are neither an acknowledgement nor an expected refusal, by status and code. */
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
      // If two calls are concurrent, the refused one may be answered first.
      if (tracked.verifiedAt !== undefined && tracked.verifiedAt !== verifiedAt)
        violations.push(`${tracked.id} has another verifiedAt`)
      tracked.isVerified = true
      tracked.verifiedAt = verifiedAt
      touched.add(tracked)
      onAcknowledged({ kind: 'verified', answerId, id: tracked.id, at: verifiedAt })
      count.verified++
      count.acknowledged++
    },
    /** Records the response that the request was already verified. */
    alreadyVerified(tracked: TrackedRequest, verifiedAt: string) {
      if (tracked.verifiedAt === undefined && !tracked.maybeVerified)
        violations.push(`${tracked.id} was not verified by any call`)
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
    /** Records an attempt without a response, or with one that does not say whether it counted. */
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
