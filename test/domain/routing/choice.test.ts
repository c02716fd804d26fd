import { describe, expect, test } from 'bun:test'
import type {
  ChoiceCandidate,
  ConversionEstimate,
  LearningStrategy,
} from '../../../src/domain/model/route-choice.ts'
import { chooseProviders } from '../../../src/domain/routing/choice.ts'
import { seededRandom } from '../../helpers/seeded-random.ts'

const free = { isOpen: false, wasTried: false }
const never = () => 0.99

const rates: Record<string, ConversionEstimate> = {
  cheap: { conversion: 0.6, samples: 500, scope: 'country', isSilent: false },
  middle: { conversion: 0.8, samples: 500, scope: 'country', isSilent: false },
  good: { conversion: 0.85, samples: 500, scope: 'country', isSilent: false },
}
const priced = (changes: Record<string, Partial<ChoiceCandidate>> = {}) =>
  Object.entries({ good: 9_000, cheap: 5_000, middle: 6_000 }).map(([provider, price]) => ({
    provider,
    price,
    ...free,
    ...changes[provider],
  }))

const choose = (
  strategy: LearningStrategy,
  candidates: readonly ChoiceCandidate[] = priced(),
  random = never,
  changes: Record<string, Partial<ConversionEstimate>> = {},
) =>
  chooseProviders(
    { strategy, channel: 'sms', country: 'NL', candidates },
    ({ provider }) => ({ ...(rates[provider] ?? unknown), ...changes[provider] }),
    random,
  )
const unknown: ConversionEstimate = { conversion: 0.75, samples: 0, scope: 'none', isSilent: false }

const order = (...given: Parameters<typeof choose>) => {
  const { considered, reason } = choose(...given)
  return [...considered.map(({ provider }) => provider), reason].join(' ')
}

describe('chooseProviders', () => {
  test('orders by price per verified code, by conversion, or by both', () => {
    // 0.0075, 0.0083 and 0.0106 per verified code.
    expect(order('cost')).toBe('middle cheap good best')
    expect(order('conversion')).toBe('good middle cheap best')
    expect(order('balanced')).toBe('middle good cheap best')
  })

  test('takes a provider without a price for as dear as the dearest', () => {
    expect(order('cost', priced({ middle: { price: null } }))).toBe('cheap good middle best')
  })

  test('keeps the order of the configuration while nothing is known and prices are equal', () => {
    const candidates = ['b', 'a', 'c'].map((provider) => ({ provider, price: 5, ...free }))
    expect(order('cost', candidates)).toBe('b a c best')
    expect(order('conversion', candidates)).toBe('b a c best')
  })

  test('comes back to an open, silent or tried provider last, and says so', () => {
    expect(order('cost', priced({ middle: { isOpen: true } }))).toBe('cheap good middle others_open')
    expect(order('cost', priced({ middle: { wasTried: true } }))).toBe('cheap good middle untried')
    expect(order('cost', priced(), never, { middle: { isSilent: true } })).toBe(
      'cheap good middle others_silent',
    )
    const all = priced({ middle: { isOpen: true }, cheap: { wasTried: true } })
    expect(order('cost', all, never, { good: { isSilent: true } })).toBe('cheap good middle others_open')
  })

  test.each([0, 5, 500, 100_000])('explores with 2 to 10 of 100 messages after %d outcomes', (samples) => {
    const random = seededRandom(samples + 1)
    const firsts = Array.from({ length: 20_000 }, () =>
      choose('cost', priced(), random, {
        cheap: { samples },
        middle: { samples },
        good: { samples },
      }),
    )
    const explored = firsts.filter(({ reason }) => reason === 'explored').length / firsts.length
    expect(explored).toBeGreaterThan(0.017)
    expect(explored).toBeLessThan(0.1)
    // Certain estimates leave the least share, uncertain ones more.
    if (samples === 0) expect(explored).toBeGreaterThan(0.05)
    if (samples === 100_000) expect(explored).toBeLessThan(0.023)
    const chosen = new Set(firsts.map(({ considered }) => considered[0]?.provider))
    expect([...chosen].toSorted()).toEqual(['cheap', 'good', 'middle'])
  })

  test('explores dear and unlikely providers less', () => {
    const random = seededRandom(5)
    const candidates = priced({ good: { price: 36_000 } })
    const sure = { cheap: { samples: 1e6 }, middle: { samples: 1e6 }, good: { samples: 1e6 } }
    const explored = Array.from({ length: 50_000 }, () => choose('cost', candidates, random, sure))
      .filter(({ reason }) => reason === 'explored')
      .map(({ considered }) => considered[0]?.provider)
    const cheap = explored.filter((provider) => provider === 'cheap').length / explored.length
    // 0.6 / 0.005 verified codes for the money, against 0.85 / 0.036.
    expect(cheap).toBeGreaterThan(0.8)
    expect(cheap).toBeLessThan(0.88)
  })

  test('never explores with a resend, or with an open provider', () => {
    const random = seededRandom(3)
    for (let count = 0; count < 1_000; count++) {
      expect(order('cost', priced({ good: { wasTried: true } }), random)).toBe('middle cheap good best')
      // The best by conversion, so that a comparison would find it.
      for (const strategy of ['cost', 'conversion'] as const) {
        const open = choose(strategy, priced({ good: { isOpen: true } }), random)
        expect(open.considered[0]?.provider).not.toBe('good')
      }
    }
  })
})
