import type { Clock } from '../model/clock.ts'
import { ServiceError } from '../model/errors.ts'
import type {
  ChallengeKind,
  ChallengeService,
  ChallengeSettings,
  CheckToken,
  TokenCheck,
} from '../model/challenge.ts'
import type { Keys } from '../model/keys.ts'
import type { Random } from '../model/random.ts'
import { checkAltcha, createAltcha, type AltchaChallenge } from './altcha.ts'
import type { Environment } from '../../shared/otp-values.ts'

/** How many times the allowances are open to sends that passed a challenge. */
export const challengeTimes = 3

/** Token that an application sent with a message, checked. Only applications can show challenges. */
export type ChallengeAnswer =
  | { outcome: 'none' | 'failed' }
  | {
      outcome: 'passed'
      /** Row that remembers a solution which otpd checked itself. */
      once: string | undefined
    }

/** No token came with the message. */
export const noToken: ChallengeAnswer = { outcome: 'none' }

/** Data that a page needs to show a challenge. */
type ChallengeData =
  { kind: ChallengeService['kind']; siteKey: string } | ({ kind: 'altcha' } & AltchaChallenge)

export type Challenges = ReturnType<typeof createChallenges>

/** Creates the service that makes challenges and checks what pages did with them. */
export function createChallenges(needs: {
  /** Settings in effect. */
  settings(): { mode: string; challenge: ChallengeSettings | null }
  keys: Pick<Keys, 'challenge'>
  clock: Clock
  random: Random
  checkToken: CheckToken
  /** Called with the result of each check. */
  onChecked?: ((kind: ChallengeKind, check: TokenCheck) => void) | undefined
}) {
  const { keys, clock } = needs

  function checkSolution(token: string): ChallengeAnswer {
    const solved = checkAltcha(keys.challenge, token, clock.now())
    needs.onChecked?.('altcha', solved ? { outcome: 'passed' } : { outcome: 'failed', error: 'wrong or old' })
    // Whether it was used before is known only once its row is locked.
    return solved ? { outcome: 'passed', once: `challenge ${solved}` } : { outcome: 'failed' }
  }

  return {
    /** Makes the data that a page needs to show a challenge; undefined if none is set up. */
    create(now: number): ChallengeData | undefined {
      const { challenge } = needs.settings()
      if (challenge === null) return undefined
      return challenge.kind === 'altcha'
        ? { kind: 'altcha', ...createAltcha(keys.challenge, needs.random, now) }
        : { kind: challenge.kind, siteKey: challenge.siteKey }
    },

    /**
     * Checks the token of a message, if it has one. May ask a service, so it runs before the transaction of the message; fails
     * closed: without an answer the challenge is not passed.
     */
    async answer(
      { environment }: { environment: Environment },
      { challenge: token, clientIp }: { challenge?: string | undefined; clientIp?: string | undefined },
    ): Promise<ChallengeAnswer> {
      const { challenge, mode } = needs.settings()
      // As the guard itself, which refuses nothing otherwise.
      const isUsed = mode === 'enforce' && environment === 'live'
      if (token === undefined || challenge === null || !isUsed) return noToken
      if (challenge.kind === 'altcha') return checkSolution(token)
      const check = await needs.checkToken(challenge, token, clientIp)
      needs.onChecked?.(challenge.kind, check)
      return check.outcome === 'passed' ? { outcome: 'passed', once: undefined } : { outcome: 'failed' }
    },
  }
}

/** CHALLENGE_REQUIRED. @param answer tells whether a token came with the message */
export const challengeRequired = (challenge: ChallengeData, answer: ChallengeAnswer | undefined) =>
  answer === undefined || answer.outcome === 'none'
    ? new ServiceError(
        'CHALLENGE_REQUIRED',
        'Let the user pass the challenge, and send again with its token as `challenge`.',
        { metadata: challenge },
      )
    : new ServiceError(
        'CHALLENGE_REQUIRED',
        'This challenge was not passed, is too old or was used before. Let the user pass the new one.',
        { reason: 'CHALLENGE_FAILED', metadata: challenge },
      )
