import { systemWorld } from '../../src/world/system.ts'
import type { World } from '../../src/world/world.ts'

/** The system's world, but a password hash takes 0.05 ms of CPU instead of 30 ms. */
export const testWorld: World = {
  ...systemWorld,
  hashPassword: (password) =>
    Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 }),
}
