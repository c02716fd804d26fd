import { seededRandom } from '../../helpers/seeded-random.ts'
import type { Attack } from './attacks.ts'
import { runTrace, shareOf, worstDay, type Figures } from './traces.ts'

const days = 3
const kept = 10

type Candidate = { attacks: [Attack, ...Attack[]]; tellsClientIp: boolean; isSmall: boolean }
type Found = Candidate & { figures: Figures; harm: number }

/**
 * Searches for attacks that do more harm than those of the traces: random ones in the first half of the rounds, then changes
 * of those that did most. Harm is what left for each phone of the attacker's own, as a share of the bound, and the honest
 * users refused. The same seed tries the same attacks.
 *
 * @returns a line for each of the ten worst, and those that are above the bounds
 */
export async function searchWorst(seed: number, rounds: number) {
  const random = seededRandom(seed + 7)
  const pick = <T>(list: readonly [T, ...T[]]): T => list[Math.floor(random() * list.length)] ?? list[0]
  const parts: { [Name in keyof Required<Attack>]: () => Attack[Name] } = {
    perMinute: () => pick([0.2, 0.5, 1, 3, 10, 30]),
    isBurst: () => pick([false, false, true]),
    activeHours: () => pick([24, 24, 8, 1]),
    to: () => pick(['converting', 'converting', 1, 3, 40, 200]),
    networks: () => pick<Attack['networks']>([0, 1, 20, 500, 10_000, 'shared']),
    devices: () => pick([0, 0, 1, 500, 100_000]),
    owned: () => pick([0, 0, 1, 4, 20]),
    codesOfOwned: () => pick([1, 5]),
    resends: () => pick([false, false, true]),
    numbers: () => pick(['random', 'random', 'consecutive', 'sweep']),
    isRelayed: () => pick([false, false, false, true]),
  }
  const names = Object.keys(parts) as [keyof Attack, ...Array<keyof Attack>]
  const draw = (chosen: readonly (keyof Attack)[]) =>
    Object.fromEntries(chosen.map((name) => [name, parts[name]()])) as Partial<Attack>
  const create = (): Attack => ({ perMinute: 1, to: 1, networks: 0, ...draw(names) })

  function nextCandidate(parent: Candidate | undefined): Candidate {
    // A third of the attackers do two things at a time.
    if (!parent) {
      const attacks: Candidate['attacks'] = random() < 0.33 ? [create(), create()] : [create()]
      return { attacks, tellsClientIp: random() < 0.7, isSmall: random() < 0.3 }
    }
    const [first, ...others] = parent.attacks
    const changed = { ...first, ...draw([pick(names), pick(names)]) }
    return { ...parent, attacks: random() < 0.2 ? [changed, create()] : [changed, ...others] }
  }

  const worst: Found[] = []
  for (let round = 0; round < rounds; round++) {
    const isFirstHalf = round < rounds / 2
    const candidate = nextCandidate(isFirstHalf ? undefined : worst[Math.floor(random() * worst.length)])
    const [attack, ...also] = candidate.attacks
    const figures = await runTrace({ name: '', goal: {}, ...candidate, attack, also }, seed, days)
    worst.push({ ...candidate, figures, harm: harmOf(figures) })
    worst.sort((a, b) => b.harm - a.harm)
    worst.splice(kept)
  }
  return { lines: worst.map(describe), aboveBounds: worst.filter(isAboveBounds).map(describe) }
}

const shareElsewhere = ({ ofOthers }: Figures) => shareOf(ofOthers, 'refused')

/** A message too many for each of the attacker's phones, and each refused honest user, counts. */
const harmOf = (figures: Figures) =>
  Math.max(0, figures.left / figures.bound - 1) +
  worstDay(figures.days, 'refused') +
  10 * shareElsewhere(figures) +
  (0.1 * figures.left) / figures.bound

const isAboveBounds = ({ figures }: Found) =>
  figures.left > figures.bound || shareElsewhere(figures) > 0.001 || figures.evidence < 0.9

function describe({ attacks, tellsClientIp, isSmall, figures, harm }: Found): string {
  const { left, bound, ownPhones, days, ofOthers } = figures
  const percent = (kind: 'refused' | 'lost') => `${(100 * worstDay(days, kind)).toFixed(2)} %`
  const ofDay = `${percent('refused')} of its worst day, ${percent('lost')} without a code`
  const where = `${isSmall ? ', small country' : ''}${tellsClientIp ? '' : ', clientIp not told'}`
  const owned = ownPhones > 0 ? ` with ${ownPhones} phones of its own` : ''
  return `harm ${harm.toFixed(2)}: ${left} of ${bound} left${owned}, refused ${ofDay}, ${ofOthers.refused} of others: ${JSON.stringify(attacks)}${where}`
}
