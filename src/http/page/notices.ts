import { ServiceError } from '../../domain/model/errors.ts'
import type { OtpRequest } from '../../domain/model/request.ts'
import { attemptsMax } from '../../domain/model/code.ts'
import { fill, formatWait, type Language } from './language.ts'
import type { Notice } from './view.ts'

/** Names of what can go wrong in the code step, which the URL of the page has after the redirect. No other is shown. */
export const codeErrors = ['wrong', 'ended', 'wait', 'blocked', 'undelivered', 'failed'] as const
export type CodeError = (typeof codeErrors)[number]

/** Finds what to tell the end user about an error of an operation. */
export function codeErrorOf({ code, reason }: ServiceError): CodeError {
  if (code === 'INVALID_CODE') return 'wrong'
  if (code === 'RATE_LIMITED') return 'wait'
  if (code === 'DESTINATION_BLOCKED' || code === 'CHALLENGE_REQUIRED') return 'blocked'
  if (code === 'DELIVERY_FAILED') return 'undelivered'
  const isEnded = code === 'OTP_EXPIRED' || code === 'OTP_CANCELED' || code === 'ATTEMPTS_EXHAUSTED'
  return isEnded || reason === 'SESSION_CLOSED' ? 'ended' : 'failed'
}

/** Writes the notice of an error in the code step. @param waitSeconds until a call can succeed */
export function codeNotice(
  language: Language,
  error: CodeError,
  request: Pick<OtpRequest, 'attempts'> | undefined,
  waitSeconds: number,
): Notice {
  const { texts } = language
  switch (error) {
    case 'wrong': {
      const count = String(attemptsMax - (request?.attempts ?? attemptsMax))
      return request ? { text: fill(texts.wrongCode, { count }), field: 'code' } : { text: texts.codeEnded }
    }
    case 'ended':
      return { text: texts.codeEnded }
    case 'wait':
      return { text: fill(texts.tooMany, { time: formatWait(language, waitSeconds) }) }
    case 'blocked':
      return { text: texts.blocked }
    case 'undelivered':
      return { text: texts.notDelivered }
    case 'failed':
      return { text: texts.failed }
  }
}

/** Writes the notice of an error in the phone step. */
export function phoneNotice(language: Language, error: ServiceError): Notice {
  // Any other field is the application's, such as a template that was deleted since.
  const isPhone =
    error.code === 'INVALID_PHONE_NUMBER' || error.details?.some(({ path }) => path === 'country')
  if (isPhone) return { text: language.texts.invalidPhone, field: 'phone' }
  return codeNotice(language, codeErrorOf(error), undefined, error.retryAfterSeconds ?? 60)
}

/** Writes the notice of a request that ended while its page was open. */
export const endedNotice = ({ texts }: Language, request: OtpRequest | undefined): Notice | undefined => {
  if (!request || request.status === 'canceled') return undefined
  return { text: request.failureReason === 'delivery_failed' ? texts.notDelivered : texts.codeEnded }
}
