import type { PasswordHashing } from '../domain/accounts/accounts.ts'
import { ServiceError } from '../domain/model/errors.ts'

/** OWASP ASVS 5.0 §6.2.1 requires 8 and recommends 15. */
export const passwordLengthMin = 12
/** Bounds the cost of Unicode normalization; argon2id accepts any length. */
export const passwordBytesMax = 1024

/**
 * OWASP's parameters for argon2id: two passes, and 19 MiB, so that two hashes at a time fit the smallest
 * machine.
 */
const cost = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const
const runningMax = 2
const waitingMax = 64

/**
 * Password hashing with argon2id. At most two hashes run at a time and at most 64 callers wait, so that a
 * burst of logins cannot take memory and CPU from the rest of the service.
 */
export function createPasswords(): PasswordHashing {
  const runQueued = createConcurrencyLimiter(runningMax, waitingMax)
  let dummyHash: Promise<string> | undefined

  return {
    /**
     * Hashes a password.
     *
     * @param password must have passed `isAcceptablePassword`
     * @throws UNAVAILABLE when too many are waiting
     */
    hash: (password) => runQueued(() => Bun.password.hash(normalize(password), cost)),

    /**
     * Whether the password matches the hash. Without a hash (unknown account) the result is false after the
     * same work, so that timing does not reveal which accounts exist.
     *
     * @throws UNAVAILABLE when too many are waiting
     */
    verify: (password, hash) =>
      runQueued(async () => {
        dummyHash ??= Bun.password.hash(crypto.randomUUID(), cost)
        const expected = hash ?? (await dummyHash)
        const candidate = isWithinBounds(password) ? normalize(password) : ' '
        const matches = await Bun.password.verify(candidate, expected)
        return matches && hash !== undefined && isWithinBounds(password)
      }),

    isAcceptable: isAcceptablePassword,
  }
}

/**
 * Whether a password has at least 12 characters (code points after normalization) and at most 1,024 bytes.
 */
export function isAcceptablePassword(password: string): boolean {
  return isWithinBounds(password) && [...normalize(password)].length >= passwordLengthMin
}

function isWithinBounds(password: string): boolean {
  return password !== '' && Buffer.byteLength(password) <= passwordBytesMax
}

/** NIST SP 800-63B-4 §3.1.1.2: the same characters typed on different systems must give the same bytes. */
function normalize(password: string): string {
  return password.normalize('NFKC')
}

function createConcurrencyLimiter(runningMax: number, waitingMax: number) {
  let running = 0
  const waiters: (() => void)[] = []

  return async <T>(task: () => Promise<T>): Promise<T> => {
    if (running < runningMax) {
      running += 1
    } else {
      if (waiters.length >= waitingMax) {
        throw new ServiceError('UNAVAILABLE', 'Too many logins at once. Try again shortly.', {
          retryAfterSeconds: 2,
        })
      }
      // The finished task passes its slot on, so `running` does not change.
      await new Promise<void>((resolve) => waiters.push(resolve))
    }
    try {
      return await task()
    } finally {
      const next = waiters.shift()
      if (next) next()
      else running -= 1
    }
  }
}
