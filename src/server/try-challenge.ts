import { createTokenCheck } from '../delivery/check-token.ts'
import type { ChallengeService } from '../domain/model/challenge.ts'

/**
 * Asks a service about a token that it has not issued, for commands.
 *
 * @returns undefined if it knows the secret, or what it says otherwise
 */
export async function tryChallenge(service: ChallengeService, version: string): Promise<string | undefined> {
  const { checkToken, close } = createTokenCheck({ version })
  try {
    const check = await checkToken(service, 'otpd-doctor', undefined)
    return check.outcome === 'unavailable' ? check.error : undefined
  } finally {
    close()
  }
}
