import { createGuard, withGuard, type GuardedRequest } from '../../src/domain/guard/guard.ts'
import type { GuardSettings } from '../../src/domain/guard/rules.ts'
import { deriveKeys, masterKeyBytes } from '../../src/domain/model/keys.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { testClock } from './clock.ts'

/** Settings with every rule off. A test turns on the rule that it is about. */
export const guardOff: GuardSettings = {
  mode: 'enforce',
  countries: [],
  deniedCountries: [],
  trusted: { countries: [], prefixes: [], addresses: [] },
  unverified: {
    countryPerHour: 0,
    countryPerDay: 0,
    prefixPerHour: 0,
    prefixPerDay: 0,
    addressPerHour: 0,
    addressPerDay: 0,
    addressCountries: 0,
  },
  hourlyPercent: 20,
  dailyPercent: 30,
  caps: { applicationPerDay: 0, totalPerDay: 0 },
}

const stranger = { isKnownPhone: false, contexts: [] }

/** Creates a guard on a real store, called as sends and verifications call it. */
export function createGuardFixture(store: Store, settings: GuardSettings, clock = testClock()) {
  const faults: unknown[] = []
  const keys = deriveKeys(new Uint8Array(masterKeyBytes).fill(7))
  const guard = createGuard({ settings, keys, onFault: (error) => void faults.push(error) })
  let lastNumber = 0

  /** Creates a request with a phone of its own. Phones differ in the digits before the last four. */
  function createRequest(overrides: Partial<GuardedRequest> = {}): GuardedRequest {
    lastNumber++
    return {
      appId: 'app_1',
      environment: 'live',
      phone: `+316${String(lastNumber).padStart(4, '0')}0000`,
      country: 'NL',
      clientIp: null,
      provider: null,
      createdAt: clock.now(),
      resends: 0,
      contexts: [],
      ...overrides,
    }
  }

  const evaluate = (request: GuardedRequest) =>
    withGuard(guard, (trackedGuard) =>
      store.write((tx) => trackedGuard.evaluate(tx, request, stranger, clock.now())),
    )

  return {
    clock,
    guard,
    faults,
    createRequest,
    evaluate,
    /** Sends `count` times. @returns the last request, and the verdict on each */
    async send(count: number, overrides: Partial<GuardedRequest> = {}) {
      const rules: string[] = []
      let request = createRequest(overrides)
      for (let sent = 0; sent < count; sent++) {
        request = createRequest(overrides)
        rules.push((await evaluate(request)).violatedRules.join(' '))
      }
      return { request, rules }
    },
    verify: (request: GuardedRequest) =>
      withGuard(guard, (trackedGuard) =>
        store.write((tx) => trackedGuard.recordConversion(tx, request, clock.now())),
      ),
    revert: (request: GuardedRequest) => store.write((tx) => guard.revert(tx, request)),
  }
}
