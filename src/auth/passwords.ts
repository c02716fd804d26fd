import type { PasswordHashing } from '../domain/accounts/accounts.ts'
import { ServiceError } from '../domain/model/errors.ts'

/** Between the 8 that OWASP ASVS 5.0 §6.2.1 requires and the 15 that it recommends. */
export const passwordLengthMin = 12
/** Bounds the work of normalising; argon2id itself does not mind. */
export const passwordBytesMax = 1024

/** OWASP's figures for argon2id: 19 MiB, so that two at once fit the smallest machine, and two passes. */
const cost = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const
const runningMax = 2
const waitingMax = 64

/**
 * Password hashing with argon2id. At most two hashes run at a time and at most 64 callers wait, so that a
 * storm of logins takes neither the memory nor the processors from the rest of the service.
 */
export function createPasswords(): PasswordHashing {
  const runQueued = createConcurrencyLimiter(runningMax, waitingMax)
  let dummyHash: Promise<string> | undefined

  return {
    /**
     * @param password must have passed `isAcceptablePassword`
     * @throws UNAVAILABLE when too many are waiting
     */
    hash: (password) => runQueued(() => Bun.password.hash(normalize(password), cost)),

    /**
     * Whether the password belongs to the hash. An absent hash (nobody has that name) costs as much as a
     * present one and is false, so that the time tells nothing.
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

/** At least 12 characters (code points, after normalising) and at most 1,024 bytes. */
export function isAcceptablePassword(password: string): boolean {
  return isWithinBounds(password) && [...normalize(password)].length >= passwordLengthMin
}

function isWithinBounds(password: string): boolean {
  return password !== '' && Buffer.byteLength(password) <= passwordBytesMax
}

/** NIST SP 800-63B-4 §3.1.1.2: the same characters typed on two systems must give the same bytes. */
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
      // The one who leaves hands its place over, so `running` stays as it is.
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
