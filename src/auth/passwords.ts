import { availableParallelism } from 'node:os'
import type { PasswordHasher, PasswordHashing } from '../domain/accounts/password-hashing.ts'
import type { Clock } from '../domain/model/clock.ts'
import { createHashQueue } from './hash-queue.ts'
import { findPasswordFault, isWithinBounds, normalizePassword } from './password-rules.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

/**
 * OWASP's parameters for argon2id: two passes, and 19 MiB, so that a hash fits the smallest machine.
 */
const cost = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

/** Hashes and the flushes of the disk share Bun's threads. There are two at least, and one is left for flushes. */
const runningMax = availableParallelism() > 2 ? 2 : 1

const queueLimits = { runningMax, waitingMax: 256, waitingPerNetworkMax: 4, budget: 60 }

/** Checks before a hash, each of a few reads. The budget is that of the hashes. */
const checkLimits = { runningMax: 2, waitingMax: 1_000, waitingPerNetworkMax: 60, budget: Infinity }

/**
 * Password hashing with argon2id, in a queue that is fair to every network. One hash or two run at a time, so that a
 * burst of logins cannot take memory and CPU from the rest of the service.
 */
export function createPasswords(clock: Clock, world: World = systemWorld): PasswordHashing {
  const runInTurn = createHashQueue(queueLimits, clock)
  const checkInTurn = createHashQueue(checkLimits, clock)
  let dummyHash: Promise<string> | undefined

  const hasher: PasswordHasher = {
    hash: (password) => world.hashPassword(normalizePassword(password), cost),

    async verify(password, hash) {
      dummyHash ??= world.hashPassword(world.uuid(), cost)
      const expected = hash ?? (await dummyHash)
      const candidate = isWithinBounds(password) ? normalizePassword(password) : ' '
      const matches = await world.verifyPassword(candidate, expected)
      return matches && hash !== undefined && isWithinBounds(password)
    },

    isOutdated(hash) {
      const [, memoryCost, timeCost] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),/.exec(hash) ?? []
      return Number(memoryCost ?? 0) < cost.memoryCost || Number(timeCost ?? 0) < cost.timeCost
    },
  }

  return {
    takeTurn: (turn, work) => runInTurn(turn, () => work(hasher)),
    takeCheckTurn: (network, check) => checkInTurn({ network, isKnown: false }, check),
    findFault: findPasswordFault,
  }
}
