import { seededRandom } from '../../helpers/seeded-random.ts'
import type { Attack } from './attacks.ts'
import { runTrace, type Figures } from './traces.ts'

const days = 3
const [rounds, kept] = [40, 10]

type Found = { attack: Attack; tellsClientIp: boolean; figures: Figures; harm: number }

/**
 * Searches for attacks that do more harm than those of the traces: random ones at first, then changes of those that did
 * most. Harm is what left beyond the bound, and the honest users refused.
 *
 * @returns a line for each of the ten worst
 */
export async function searchWorst(seed: number): Promise<string[]> {
  const random = seededRandom(seed + 7)
  const pick = <T>(list: readonly [T, ...T[]]): T => list[Math.floor(random() * list.length)] ?? list[0]
  const parts: { [Name in keyof Required<Attack>]: () => Attack[Name] } = {
    perMinute: () => pick([0.2, 0.5, 1, 3, 10, 30]),
    isBurst: () => pick([false, false, true]),
    to: () => pick(['converting', 'converting', 1, 3, 40, 200]),
    networks: () => pick([0, 1, 20, 500, 10_000]),
    devices: () => pick([0, 0, 1, 500, 100_000]),
    owned: () => pick([0, 0, 1, 4, 20]),
    codesOfOwned: () => pick([1, 5]),
    resends: () => pick([false, false, true]),
    numbers: () => pick(['random', 'random', 'consecutive', 'sweep']),
  }
  const names = Object.keys(parts) as [keyof Attack, ...Array<keyof Attack>]
  const draw = (names: readonly (keyof Attack)[]) =>
    Object.fromEntries(names.map((name) => [name, parts[name]()])) as Partial<Attack>
  const worst: Found[] = []
  for (let round = 0; round < rounds; round++) {
    const parent = round < rounds / 2 ? undefined : worst[Math.floor(random() * worst.length)]
    const start: Attack = { perMinute: 1, to: 1, networks: 0 }
    const changed = parent ? [pick(names), pick(names)] : names
    const attack: Attack = { ...start, ...parent?.attack, ...draw(changed) }
    const tellsClientIp = parent?.tellsClientIp ?? random() < 0.7
    const figures = await runTrace({ name: '', tellsClientIp, attack, goal: {} }, seed, days)
    const { left, bound, worstDay, ofOthers } = figures
    const elsewhere = ofOthers.users > 0 ? ofOthers.refused / ofOthers.users : 0
    const harm = Math.max(0, left / bound - 1) + worstDay + 10 * elsewhere + (0.1 * left) / bound
    worst.push({ attack, tellsClientIp, figures, harm })
    worst.sort((a, b) => b.harm - a.harm)
    worst.splice(kept)
  }
  return worst.map(({ attack, tellsClientIp, figures: { left, bound, worstDay, ofOthers }, harm }) => {
    const refused = `${(100 * worstDay).toFixed(2)} % of its worst day, ${ofOthers.refused} of others`
    const told = tellsClientIp ? '' : ', clientIp not told'
    return `worst ${harm.toFixed(2)}: ${left} of ${bound}, refused ${refused}: ${JSON.stringify(attack)}${told}`
  })
}
