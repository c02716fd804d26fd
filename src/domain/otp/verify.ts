import { readRefusal } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import { ServiceError } from '../model/errors.ts'
import { attachRate, isRejected, reject, type Rejected } from '../model/rejected.ts'
import { timeBucket } from '../model/verification-time.ts'
import { eventChange, breakdownChange, countChange } from '../log/changes.ts'
import { firstNames } from '../guard/row-keys.ts'
import type { GuardChanges } from '../store/guard.ts'
import { afterVerification } from './identities.ts'
import { trustOfCall, withUsage, type TrustLevel, type PhoneRecord } from '../model/phone-record.ts'
import { hashContexts } from '../model/context.ts'
import { attemptsMax, matchesCode } from '../model/code.ts'
import { canonicalVariables, type MessageVariables } from '../model/message-variables.ts'
import { formatAttempt } from '../model/request-history.ts'
import type { OtpNeeds } from './needs.ts'
import { chargeRate, otpRateLimit } from './rate-limits.ts'
import { closeRequest, refuseIfClosed, type ClosableRequest } from './lifecycle.ts'
import type { OtpRequest } from '../model/request.ts'
import { afterFailure, refuseSpentBudget } from '../limits/check-budget.ts'
import type { LoadedPhone } from '../store/phones.ts'
import { hasPhoneBudgets, trustOfRequest, namePhoneRows, readRequestPhone } from './phones.ts'
import { readSender } from './judge-message.ts'
import {
  createRequestFinder,
  readTarget,
  requestNotFound,
  type OtpTarget,
  type Checker,
  type ParsedTarget,
  type RequestFinder,
} from './target.ts'
import type { RateState } from '../model/rate-limit.ts'
import type { Change, Decision, NamedRows, Operation, Rows } from '../store/operation.ts'
import { utcDay } from '../../shared/durations.ts'

/** The outcome of a check: the verified request or a refusal. `request` is undefined if there is none. */
export type CheckResult = {
  rate: RateState | undefined
  request: OtpRequest | undefined
  result: OtpRequest | Rejected
}

/**
 * The end user's answer. Any code but six ASCII digits is wrong. `variables` are amount and payee of the payment that is
 * verified: with others, or without them, its code is wrong.
 */
type Answer = { code: string; variables?: MessageVariables | undefined }

type CheckedRequest = ClosableRequest & { phone: LoadedPhone; trust: TrustLevel }

/** Verifies codes. */
export function createOtpVerify(needs: OtpNeeds) {
  const { newId, keys, plans, guard, checkFailuresMax } = needs

  const isLimited = (request: OtpRequest) => checkFailuresMax > 0 && hasPhoneBudgets(request)

  return { check, verify, checkOperation }

  /**
   * Checks a code and, if it is right, marks the request verified.
   *
   * @throws as `check` refuses
   */
  async function verify(application: CallingApplication, target: OtpTarget, answer: Answer) {
    const { rate, result } = await check(application, target, answer)
    if (isRejected(result)) throw attachRate(result, rate)
    return { request: result, rate }
  }

  /**
   * Checks a code as `verify` does, and returns a refusal as a value:
   *
   * - INVALID_CODE with the remaining attempts
   * - NOT_FOUND no such request of this application
   * - ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when the request is closed; a phone never means a
   *   closed one, but for ATTEMPTS_EXHAUSTED
   * - RATE_LIMITED (APP_RATE, PHONE_CHECK_BUDGET); neither an attempt nor the rate was charged
   * - UNAUTHENTICATED or FORBIDDEN when the application changed since its credentials were checked
   *
   * An attempt that is not counted reveals nothing, so that concurrent guesses cannot pass the limit of `attemptsMax`. A
   * wrong code is answered after its attempt is committed, so that a crash cannot give the attempt back. Of several
   * concurrent calls with the right code exactly one succeeds.
   *
   * @throws INVALID_PHONE_NUMBER
   */
  async function check(application: CallingApplication, target: OtpTarget, answer: Answer) {
    const read = await readTarget(needs, application, target)
    const checked = await needs.store.decide(checkOperation(application, read, answer))
    if (!isRejected(checked.result)) needs.onEnded(checked.result)
    return checked
  }

  /** The operation of a check: the caller, the limits, then the code. */
  function checkOperation(
    application: CallingApplication,
    target: ParsedTarget,
    answer: Answer,
  ): Operation<CheckResult> {
    const finder = createRequestFinder(needs, application, target)
    return {
      preload: {
        lookUp: finder.lookUp,
        first: (rows) => ({ application, ...finder.nameRows(rows) }),
        next: (rows) => nameRows(rows, application, finder),
      },
      decide(rows) {
        const now = rows.now()
        const request = finder.find(rows, now)
        const refuse = (result: Rejected) => ({ result: { rate: undefined, request, result }, changes: [] })
        const refusal = readRefusal(rows, application)
        if (refusal) return refuse(refusal)
        const phone = request && readRequestPhone(rows, keys, request)
        const trust =
          phone &&
          ('phone' in target
            ? trustOfPhoneCheck(phone.record, request, target, now)
            : trustOfRequest(phone.record, request))
        const checks = trust && isLimited(request) ? phone.record.usages[trust].checks : null
        const spent = checks && refuseSpentBudget(checks, checkFailuresMax, now)
        if (spent) return refuse(spent)
        // The rate is charged for an unknown request too, so that ids cannot be probed for free.
        const charged = chargeRate(needs, rows, application, 'verify', now)
        if (isRejected(charged)) return refuse(charged)
        const { rate } = charged
        if (!request || !phone || !trust)
          return {
            result: { rate, request, result: reject(requestNotFound(target)) },
            changes: charged.changes,
          }
        const checked = { request, phone, trust, subscribers: rows.subscribers(application.id) }
        const { result, changes } = compare(rows, application, checked, answer, now)
        return { result: { rate, request, result }, changes: [...charged.changes, ...changes] }
      },
    }
  }

  /** Names the rows of a check, once its request is there. */
  function nameRows(rows: Rows, application: CallingApplication, finder: RequestFinder): NamedRows {
    const now = rows.now()
    const limit = otpRateLimit(plans, rows.caller(application), 'verify')
    const request = finder.find(rows, now)
    if (!request) return { ...finder.nameRows(rows), limit }
    const { record } = readRequestPhone(rows, keys, request)
    const { sender } = readSender(rows, application, record, request, now)
    const guardKeys = guard.keysToConvert(request, sender, now)
    return {
      ...finder.nameRows(rows),
      ...namePhoneRows(rows, keys, request),
      limit,
      guard: guardKeys && firstNames(guardKeys),
      subscribers: application.id,
    }
  }

  /** Compares the code, and counts the attempt. */
  function compare(
    rows: Rows,
    application: CallingApplication,
    checked: CheckedRequest,
    answer: Answer,
    now: number,
  ): Decision<OtpRequest | Rejected> {
    const closed = refuseIfClosed(newId, checked, now)
    if (closed) return closed
    const { request, phone } = checked
    const variables = answer.variables ? canonicalVariables(answer.variables) : null
    if (!matchesCode(keys, request.id, answer.code, request.codeHash, variables))
      return countFailure(checked, describeWrongCode(request, variables), now)
    if (guard.isExempt(request)) return markVerified(checked, undefined, undefined, now)
    const { sender } = readSender(rows, application, phone.record, request, now)
    const guardKeys = guard.keysToConvert(request, sender, now)
    const counts = guardKeys && guard.convert(rows.guard, guardKeys, request, sender, now)
    return markVerified(checked, counts, guardKeys?.subjects?.network, now)
  }

  /** Counts the attempt with a wrong code; the last one fails the request. */
  function countFailure(
    { request, subscribers, phone, trust }: CheckedRequest,
    fault: string,
    now: number,
  ): Decision<Rejected> {
    const { record } = phone
    const counted = { ...request, attempts: request.attempts + 1, updatedAt: now }
    const changes: Change[] = [{ kind: 'request', request: counted, isNew: false }]
    if (isLimited(request)) {
      const failed = withUsage(record, trust, { checks: afterFailure(record.usages[trust].checks, now) })
      changes.push({ kind: 'phone', handle: phone, record: failed })
    }
    const detail = formatAttempt(counted.attempts)
    changes.push(eventChange(newId, 'otp.attempt_failed', counted, subscribers, now, { detail }))
    const attemptsRemaining = attemptsMax - counted.attempts
    if (attemptsRemaining === 0) {
      const terminalState = { status: 'failed', failureReason: 'max_attempts' } as const
      changes.push(...closeRequest(newId, { request: counted, subscribers }, terminalState, now).changes)
    }
    // The last wrong code gets this error too, with 0 attempts left; only later calls get ATTEMPTS_EXHAUSTED.
    const remedy =
      attemptsRemaining === 0 ? 'It was the last attempt: send a new code.' : 'Check it and enter it again.'
    const wrongCode = new ServiceError('INVALID_CODE', `${fault} ${remedy}`, {
      metadata: { attemptsRemaining },
    })
    return { result: reject(wrongCode), changes }
  }

  /**
   * Marks the request verified, and its phone as known to the developer.
   *
   * @param guardChanges absent if the guard does not count the request
   * @param network key of the guard's counts, where the phone is evidence from now on
   */
  function markVerified(
    { request, subscribers, phone, trust }: CheckedRequest,
    guardChanges: GuardChanges | undefined,
    network: string | undefined,
    now: number,
  ): Decision<OtpRequest> {
    const verified: OtpRequest = {
      ...request,
      status: 'verified',
      attempts: request.attempts + 1,
      verifiedAt: now,
      updatedAt: now,
    }
    const after = afterVerification(phone.record, newId, verified, trust, now, network)
    const changes: Change[] = [
      { kind: 'request', request: verified, isNew: false },
      { kind: 'phone', handle: phone, record: after.record },
    ]
    if (guardChanges) changes.push({ kind: 'guard', changes: guardChanges })
    changes.push(
      ...after.activeChanges,
      countChange(verified, { verified: 1 }, utcDay(now)),
      breakdownChange(verified, { verified: 1, [timeBucket(now - request.sentAt)]: 1 }, now),
      eventChange(newId, 'otp.verified', verified, subscribers, now),
    )
    return { result: verified, changes }
  }

  /**
   * Decides the trust level of a check by phone. A stranger can guess by the phone alone, so it has that of its own sender, if
   * that is told; a request id is known to its sender only.
   */
  function trustOfPhoneCheck(
    record: PhoneRecord,
    request: OtpRequest,
    checker: Checker,
    now: number,
  ): TrustLevel {
    const { clientIp = null, deviceId = null } = checker
    if (clientIp === null && deviceId === null) return trustOfRequest(record, request)
    const contexts = hashContexts(keys, request.developerId, { clientIp, deviceId })
    return trustOfCall(record, { clientIp, contexts }, now)
  }
}

/** Says why a code may be wrong. Depends on the request and on the form of the call alone: it tells nothing about the code. */
function describeWrongCode({ template }: OtpRequest, variables: MessageVariables | null): string {
  const isPayment = template?.variables != null
  if (isPayment && !variables) return 'The code is of a payment: repeat its variables.'
  if (isPayment) return 'The code is wrong, or the variables are not those of its payment.'
  return variables ? 'The code is wrong, or was sent without variables.' : 'The code is wrong.'
}
