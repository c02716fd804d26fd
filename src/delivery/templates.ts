import type { OtpRequest } from '../domain/otp-requests.ts'

/** The text of a message. Ends in the code's lifetime as it was when the code was made. */
export function renderMessage(request: OtpRequest, code: string): string {
  const minutes = Math.max(1, Math.round((request.expiresAt - request.createdAt) / 60_000))
  return `${code} is your verification code. It is valid for ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}.`
}
