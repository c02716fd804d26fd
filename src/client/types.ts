// Input and results of the calls.

export type Channel = 'sms' | 'whatsapp' | 'telegram' | 'voice' | 'rcs'

/** A phone number in E.164, or as it is written in a country (ISO 3166-1 alpha-2) or else the application's `defaultCountry`. */
export type TypedPhone = { phone: string; country?: string | undefined }

/** A request, by its id or as the newest pending one of a phone. */
export type Target = { requestId: string } | TypedPhone

/** A payment. Its code is right only together with it. */
export type PaymentVariables = { amount: string; payee: string }

/**
 * A code to check. With a phone, tell who checks: a stranger's wrong codes then count for the limit of strangers. Each takes
 * one of the five attempts of the code all the same.
 */
export type CheckInput = Target & {
  code: string
  /** As in the send: with others, or without them, the code is wrong. */
  variables?: PaymentVariables | undefined
  clientIp?: string | undefined
  deviceId?: string | undefined
}

export type SendInput = TypedPhone & {
  channel?: Channel | undefined
  locale?: string | undefined
  ttlSeconds?: number | undefined
  metadata?: Readonly<Record<string, string>> | undefined
  clientIp?: string | undefined
  deviceId?: string | undefined
  /** Token of a challenge that the end user passed: see `ChallengeRequiredError`. */
  challenge?: string | undefined
  /** Name of a template of the application. */
  template?: string | undefined
  /** For a template that shows them. */
  variables?: PaymentVariables | undefined
}

export type ResendInput = Target & { channel?: Channel | undefined; challenge?: string | undefined }

/** Data that a page needs to show a challenge: the key of a widget, or a proof of work in the format of the ALTCHA widget. */
export type Challenge =
  | { kind: 'turnstile' | 'hcaptcha'; siteKey: string }
  | {
      kind: 'altcha'
      algorithm: 'SHA-256'
      challenge: string
      maxnumber: number
      salt: string
      signature: string
    }

export type SentOtp = {
  requestId: string
  phone: string
  status: 'pending'
  expiresAt: string
  /** Only of test applications. */
  code?: string
}

export type VerifiedOtp = { requestId: string; phone: string; status: 'verified'; verifiedAt: string }

/** A token of Firebase Phone Number Verification, in the place of a code. */
export type ProofInput = {
  type: 'firebase-pnv'
  token: string
  /** Nonce that you gave to the app: another one in the token is refused. */
  nonce?: string | undefined
  /** The number that you expect: another one in the token is refused. */
  phone?: string | undefined
  country?: string | undefined
  metadata?: Readonly<Record<string, string>> | undefined
  clientIp?: string | undefined
  deviceId?: string | undefined
}

export type CanceledOtp = { requestId: string; phone: string; status: 'canceled' }

export type OtpRequest = {
  id: string
  requestId: string
  appId: string
  environment: 'live' | 'test'
  phone: string
  country: string | null
  status: 'pending' | 'verified' | 'failed' | 'expired' | 'canceled'
  failureReason: 'max_attempts' | 'delivery_failed' | 'blocked' | null
  channel: string
  provider: string | null
  deliveryStatus: string | null
  template: string | null
  attempts: number
  maxAttempts: number
  resends: number
  /** The pairs that you sent; `sessionId` if the request was made on the ready page. */
  metadata: Readonly<Record<string, string>> | null
  createdAt: string
  expiresAt: string
  verifiedAt: string | null
  updatedAt: string
}

export type DeliverInput = TypedPhone & {
  /** Made and checked by you: 4 to 10 digits and letters. */
  code: string
  channel?: Channel | undefined
  locale?: string | undefined
  clientIp?: string | undefined
}

export type DeliveredCode = { id: string; phone: string; channel: Channel; status: 'sent' | 'unknown' }

/** `verified` is final; `failed` may become `verified`. */
export type Outcome = 'verified' | 'failed'

export type ReportedOutcome = { id: string; phone: string; outcome: Outcome }

/** A visit of one user to the ready page. */
export type SessionInput = {
  /** Where the browser returns to, as `returnUrl?session=…&state=…`. */
  returnUrl: string
  /** The only phone that the user can verify. */
  phone?: string | undefined
  country?: string | undefined
  locale?: string | undefined
  /** Text of yours that the browser brings back. */
  state?: string | undefined
  /** Name of a template of the application. */
  template?: string | undefined
  /** Payment that the user confirms: the page shows it, and each code is bound to it. */
  variables?: PaymentVariables | undefined
}

export type CreatedSession = { id: string; url: string; expiresAt: string }

export type Session = {
  id: string
  appId: string
  status: 'created' | 'sent' | 'verified' | 'canceled' | 'expired'
  /** Null until it is verified. */
  phone: string | null
  requestId: string | null
  state: string | null
  template: string | null
  /** Payment that the user confirms; null without one. */
  variables: PaymentVariables | null
  createdAt: string
  expiresAt: string
  verifiedAt: string | null
}

export type CheckReason = 'wrong' | 'expired' | 'used' | 'exhausted' | 'canceled' | 'unknown'

/** Result of a check. */
export type OtpCheck =
  | ({ verified: true } & VerifiedOtp)
  | {
      verified: false
      reason: CheckReason
      /** Attempts left after a wrong code; 0 after the last one: send a new code. Undefined for other reasons. */
      attemptsRemaining: number | undefined
    }
