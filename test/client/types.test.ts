import { describe, expect, test } from 'bun:test'
import type { Call, ResponseData } from '../../cli/client/routes.ts'
import type {
  CanceledOtp,
  DeliverInput,
  DeliveredCode,
  Outcome,
  ReportedOutcome,
  CreatedSession,
  Session,
  SessionInput,
  Otpd,
  OtpdErrorCode,
  OtpRequest,
  ProofInput,
  SendInput,
  SentOtp,
  VerifiedOtp,
  WebhookEventType,
} from '../../src/client/index.ts'
import type { ErrorCode } from '../../src/domain/model/errors.ts'
import type { EventKind } from '../../src/shared/event-kinds.ts'

// `otpd/client` cannot import the server, so it has types of its own. These comparisons do not compile when the routes or
// the codes change and the library does not.

/** Whether each of two types takes the values of the other. */
type Same<A, B> = [A] extends [B]
  ? [B] extends [A]
    ? true
    : { missing: Exclude<B, A> }
  : { extra: Exclude<A, B> }
const isSame = <A, B>(same: Same<A, B>) => expect(same).toEqual(true as never)

/** Without what bodies differ in: whether a field may be undefined, and whether a record may be changed. */
type Plain<T> = T extends string | number
  ? T
  : { -readonly [K in keyof T]-?: Plain<Exclude<T[K], undefined>> }
type Body<Path extends string> = Plain<NonNullable<Call<'POST', Path>['body']>>
type Result<Path extends string> = ResponseData<'POST', Path>
type Keys<T> = T extends unknown ? keyof T : never
type Input<Method extends 'resend' | 'verify' | 'cancel'> = Parameters<Otpd[Method]>[0]

describe('the types of otpd/client are those of the routes:', () => {
  test('send', () => {
    isSame<Plain<SendInput>, Body<'/v1/otp/send'>>(true)
    isSame<SentOtp, Result<'/v1/otp/send'>>(true)
  })

  test('resend, verify and cancel', () => {
    isSame<Keys<Input<'resend'>>, keyof Body<'/v1/otp/resend'>>(true)
    isSame<Keys<Input<'verify'>>, keyof Body<'/v1/otp/verify'>>(true)
    isSame<Keys<Input<'cancel'>>, keyof Body<'/v1/otp/cancel'>>(true)
    isSame<SentOtp, Result<'/v1/otp/resend'>>(true)
    isSame<VerifiedOtp, Result<'/v1/otp/verify'>>(true)
    isSame<CanceledOtp, Result<'/v1/otp/cancel'>>(true)
  })

  test('prove', () => {
    isSame<Plain<ProofInput>, Body<'/v1/otp/proofs'>>(true)
    isSame<VerifiedOtp, Result<'/v1/otp/proofs'>>(true)
  })

  test('deliver', () => {
    isSame<Plain<DeliverInput>, Body<'/v1/otp/deliver'>>(true)
    isSame<DeliveredCode, Result<'/v1/otp/deliver'>>(true)
    isSame<Outcome, Body<'/v1/otp/deliver/:id/outcome'>['outcome']>(true)
    isSame<ReportedOutcome, Result<'/v1/otp/deliver/:id/outcome'>>(true)
  })

  test('sessions', () => {
    isSame<Plain<SessionInput>, Body<'/v1/otp/sessions'>>(true)
    isSame<CreatedSession, Result<'/v1/otp/sessions'>>(true)
    isSame<Session, ResponseData<'GET', '/v1/otp/sessions/:id'>>(true)
  })

  test('get', () => {
    isSame<OtpRequest, ResponseData<'GET', '/v1/otp/:id'>>(true)
  })
})

test('the error codes of otpd/client are those of the API, and three of calls without an answer', () => {
  type OwnCode = 'CONNECTION' | 'TIMEOUT' | 'UNKNOWN'
  isSame<Exclude<OtpdErrorCode, OwnCode>, ErrorCode>(true)
})

test('the events of otpd/client are those of webhooks', () => {
  isSame<WebhookEventType, EventKind>(true)
})
