import type { TestApp } from '../helpers/webhook-client.ts'

/** What a caller knows of a request: what he was told, and what he asked for without hearing the outcome. */
export type Known = {
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
  const requests = new Map<string, Known>()
  /** Changed since the last check. */
  let touched = new Set<Known>()
  /** To be verified again once the server is back: nobody knows whether they are. */
  const unsure: Known[] = []
  const broken: string[] = []
  const others = new Map<string, number>()
  const count = { acknowledged: 0, sent: 0, verified: 0, wrong: 0, refusedAgain: 0, unanswered: 0 }

  return {
    requests,
    unsure,
    broken,
    /** Answers that are neither an acknowledgement nor a refusal that was asked for, by status and code. */
    others,
    count,

    sent(answerId: string, id: string, app: TestApp, code: string): Known {
      if (requests.has(id)) broken.push(`${id} was given to two requests`)
      const known: Known = {
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
      requests.set(id, known)
      touched.add(known)
      onAcknowledged({ kind: 'sent', answerId, id })
      count.sent++
      count.acknowledged++
      return known
    },
    verified(answerId: string, known: Known, at: string) {
      if (known.isVerified) broken.push(`${known.id} was verified twice`)
      // Of two calls at once the refused one may be heard first.
      if (known.verifiedAt !== undefined && known.verifiedAt !== at)
        broken.push(`${known.id} has another verifiedAt`)
      known.isVerified = true
      known.verifiedAt = at
      touched.add(known)
      onAcknowledged({ kind: 'verified', answerId, id: known.id, at })
      count.verified++
      count.acknowledged++
    },
    /** It was told that the request had been verified before. */
    wasVerified(known: Known, at: string) {
      if (known.verifiedAt === undefined && !known.maybeVerified)
        broken.push(`${known.id} is verified by nobody`)
      if (known.verifiedAt !== undefined && known.verifiedAt !== at)
        broken.push(`${known.id} has another verifiedAt`)
      known.verifiedAt = at
      touched.add(known)
      count.refusedAgain++
    },
    wrong(answerId: string, known: Known) {
      known.wrong++
      touched.add(known)
      onAcknowledged({ kind: 'wrong', answerId, id: known.id })
      count.wrong++
      count.acknowledged++
    },
    /** An attempt had no answer, or one that leaves open whether it counts. */
    unanswered(known: Known, right: boolean) {
      known.unanswered++
      known.maybeVerified ||= right
      touched.add(known)
      count.unanswered++
      if (right) unsure.push(known)
    },
    other(kind: string) {
      others.set(kind, (others.get(kind) ?? 0) + 1)
    },
    takeTouched(): Known[] {
      const list = [...touched]
      touched = new Set()
      return list
    },
  }
}
