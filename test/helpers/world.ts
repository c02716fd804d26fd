import { systemWorld } from '../../src/world/system.ts'
import type { World } from '../../src/world/world.ts'

/**
 * The system's world without what takes most of the time in tests: a password hash takes 0.05 ms of CPU instead of 30 ms,
 * and nothing waits for the disk, which matters only where the power fails.
 */
export const testWorld: World = {
  ...systemWorld,
  flush: () => Promise.resolve(),
  flushSync: () => {},
  onBroken(invariant, detail) {
    const error = new Error(`the invariant ${invariant} does not hold: ${detail}`)
    // A test fails also if what it calls catches the error.
    setImmediate(() => {
      throw error
    })
    throw error
  },
  hashPassword: (password) =>
    Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 }),
}
