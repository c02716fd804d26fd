import { createChance } from './chance.ts'
import { payments, repetitions, type Repetition } from './payments.ts'

/** One thing that happens. Numbers choose among what is there at that time, so that a step can be left out. */
export type Step = { at: number } & (
  | { kind: 'send'; app: number; phone: number; payment: number | null }
  | {
      kind: 'verify'
      request: number
      guess: 'right' | 'wrong'
      times: number
      byPhone: boolean
      payment: Repetition
    }
  | { kind: 'resend' | 'cancel' | 'get' | 'receipt'; request: number }
  | { kind: 'list'; app: number }
  | { kind: 'rotate'; app: number }
  | { kind: 'erase'; phone: number }
  | { kind: 'burst'; app: number; phones: number[] }
  | { kind: 'stream'; forMs: number }
  | { kind: 'kill' | 'power-cut' | 'stop' }
  | { kind: 'pause'; forMs: number }
  | { kind: 'clock'; byMs: number }
  | { kind: 'network'; forMs: number; fault: 'refused' | 'reset' | 'silent' | 'twice' | 'slow' | 'all' }
  | { kind: 'receiver' | 'provider'; forMs: number; fault: 'errors' | 'lies' }
  | { kind: 'slow-disk'; forMs: number; flushMs: number }
  | { kind: 'disk-error' }
  | { kind: 'wait'; forMs: number }
)

export type Plan = { seed: number; steps: Step[]; untilMs: number }

const minute = 60_000

/** Makes the plan of a seed: calls of several applications and what goes wrong meanwhile, in about `untilMs`. */
export function makePlan(seed: number, untilMs = 20 * minute): Plan {
  const chance = createChance(seed, 'plan')
  // A second source: the plans of seeds that once failed stay as they are otherwise.
  const paid = createChance(seed, 'payments')
  const payment = () => (paid.happens(0.3) ? paid.between(0, payments.length - 1) : null)
  const steps: Step[] = []
  const app = () => chance.between(0, 3)
  const phone = () => chance.between(0, 39)
  // Most calls are about one of the newest requests.
  const request = () => (chance.happens(0.7) ? chance.between(0, 4) : chance.between(0, 200))
  const forMs = () => Math.floor(chance.around(chance.choose([2_000, 30_000, 3 * minute])))
  const weights: Array<[weight: number, make: (at: number) => Step]> = [
    [30, (at) => ({ at, kind: 'send', app: app(), phone: phone(), payment: payment() })],
    [
      30,
      (at) => ({
        at,
        kind: 'verify',
        request: request(),
        guess: chance.happens(0.55) ? 'right' : 'wrong',
        times: chance.choose([1, 1, 1, 1, 2, 3, 8]),
        byPhone: chance.happens(0.3),
        payment: paid.happens(0.7) ? 'same' : paid.choose(repetitions),
      }),
    ],
    [5, (at) => ({ at, kind: 'resend', request: request() })],
    [4, (at) => ({ at, kind: 'cancel', request: request() })],
    [4, (at) => ({ at, kind: 'get', request: request() })],
    [6, (at) => ({ at, kind: 'receipt', request: request() })],
    [4, (at) => ({ at, kind: 'list', app: app() })],
    [1, (at) => ({ at, kind: 'rotate', app: app() })],
    [1, (at) => ({ at, kind: 'erase', phone: phone() })],
    [
      2,
      (at) => ({
        at,
        kind: 'burst',
        app: app(),
        phones: Array.from({ length: chance.between(5, 40) }, phone),
      }),
    ],
    [2, (at) => ({ at, kind: 'stream', forMs: forMs() })],
  ]
  const faults: Array<[weight: number, make: (at: number) => Step]> = [
    [4, (at) => ({ at, kind: 'kill' })],
    [5, (at) => ({ at, kind: 'power-cut' })],
    [2, (at) => ({ at, kind: 'stop' })],
    [2, (at) => ({ at, kind: 'pause', forMs: forMs() })],
    [1, (at) => ({ at, kind: 'clock', byMs: chance.choose([-3_600_000, -90_000, 90_000, 86_400_000]) })],
    [
      4,
      (at) => ({
        at,
        kind: 'network',
        forMs: forMs(),
        fault: chance.choose(['refused', 'reset', 'silent', 'twice', 'slow', 'all'] as const),
      }),
    ],
    [2, (at) => ({ at, kind: 'receiver', forMs: forMs(), fault: 'errors' })],
    [
      3,
      (at) => ({ at, kind: 'provider', forMs: forMs(), fault: chance.choose(['errors', 'lies'] as const) }),
    ],
    [
      3,
      (at) => ({ at, kind: 'slow-disk', forMs: forMs(), flushMs: chance.choose([20, 300, 5_000, 60_000]) }),
    ],
    [1, (at) => ({ at, kind: 'disk-error' })],
  ]
  const draw = (from: typeof weights, at: number) => {
    let left = chance.next() * from.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, make] of from) if ((left -= weight) < 0) return steps.push(make(at))
    return 0
  }
  const meanMs = chance.choose([150, 600, 3_000])
  const faultShare = chance.choose([0, 0.01, 0.05])
  // Quiet times let deadlines pass: codes expire, limits end, retries come.
  for (let at = 0; at < untilMs; at += chance.around(meanMs)) {
    draw(chance.happens(faultShare) ? faults : weights, Math.floor(at))
    if (chance.happens(0.004)) at += chance.around(3 * minute)
  }
  return { seed, steps, untilMs }
}

const hour = 60 * minute
const day = 24 * hour

/**
 * Makes the plan of a small shop: 100 calls an hour by day and night, a restart each week, a kill and a power cut each month,
 * and a day of its provider's errors each quarter.
 */
export function makeShopPlan(seed: number, untilMs: number): Plan {
  const chance = createChance(seed, 'shop')
  const steps: Step[] = []
  const app = () => chance.between(0, 3)
  const makeCall = (at: number): Step => {
    const draw = chance.next()
    if (draw < 0.5) return { at, kind: 'send', app: app(), phone: chance.between(0, 4_000), payment: null }
    const guess = chance.happens(0.85) ? 'right' : 'wrong'
    const byPhone = chance.happens(0.3)
    if (draw < 0.95) return { at, kind: 'verify', request: 0, guess, times: 1, byPhone, payment: 'same' }
    return draw < 0.98 ? { at, kind: 'list', app: app() } : { at, kind: 'resend', request: 0 }
  }
  // The mean of `around` is 1.09 times its median.
  for (let at = 0; at < untilMs; at += Math.ceil(chance.around(33_000))) steps.push(makeCall(at))
  const repeat = (everyMs: number, make: (at: number) => Step) => {
    for (let at = everyMs / 2; at < untilMs; at += everyMs) steps.push(make(at))
  }
  repeat(7 * day, (at) => ({ at, kind: 'stop' }))
  repeat(30 * day, (at) => ({ at, kind: 'kill' }))
  repeat(31 * day, (at) => ({ at, kind: 'power-cut' }))
  repeat(91 * day, (at) => ({ at, kind: 'provider', forMs: day, fault: 'errors' }))
  return { seed, steps: steps.toSorted((a, b) => a.at - b.at), untilMs }
}
