export type ChallengeKind = 'turnstile' | 'hcaptcha' | 'altcha'

/** A service whose widget shows challenges, and which is asked whether a token of the widget is right (siteverify). */
export type ChallengeService = {
  kind: Exclude<ChallengeKind, 'altcha'>
  siteKey: string
  secret: string
  /** Sites on which a challenge may have been passed. Empty allows all of the site key. */
  hostnames: readonly string[]
  timeoutMs: number
  /** Null: the service's own. */
  verifyUrl: string | null
}

/** A proof of work (`altcha`) needs no service. */
export type ChallengeSettings = ChallengeService | { kind: 'altcha' }

/** Result of asking a service about a token. `error` is for the log. */
export type TokenCheck = { outcome: 'passed' } | { outcome: 'failed' | 'unavailable'; error: string }

/** Asks a service about a token. Never rejects: `unavailable` if it does not say in time. */
export type CheckToken = (
  service: ChallengeService,
  token: string,
  clientIp: string | undefined,
) => Promise<TokenCheck>
