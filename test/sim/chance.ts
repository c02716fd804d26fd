import { seededRandom } from '../helpers/seeded-random.ts'

export type Chance = ReturnType<typeof createChance>

/** Creates the dice of one part of a simulation: each has its own, so that a change of one part leaves the others alone. */
export function createChance(seed: number, part: string) {
  let mixed = seed >>> 0
  for (const letter of part) mixed = (Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193) + 0x9e3779b9) >>> 0
  const next = seededRandom(mixed)
  return {
    next,
    /** True in that share of the cases. */
    happens: (share: number) => next() < share,
    /** An integer from `min` to `max`. */
    between: (min: number, max: number) => min + Math.floor(next() * (max - min + 1)),
    /** Most values near `median`, a few many times as large. */
    around: (median: number) => median * Math.exp((next() + next() + next() - 1.5) * 1.2),
    choose<T>(list: readonly T[]): T {
      const item = list[Math.floor(next() * list.length)]
      if (item === undefined) throw new Error('an empty list')
      return item
    },
    fill<T extends Uint8Array>(bytes: T): T {
      for (let index = 0; index < bytes.length; index++) bytes[index] = Math.floor(next() * 256)
      return bytes
    },
  }
}
