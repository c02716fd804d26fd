import { withGuard } from '../../src/domain/guard/fail-open.ts'
import { createGuard } from '../../src/domain/guard/guard.ts'
import type { GuardedMessage } from '../../src/domain/guard/row-keys.ts'
import type { GuardAlert, Sender } from '../../src/domain/model/guard.ts'
import type { GuardSettings } from '../../src/domain/guard/rules.ts'
import { deriveKeys, masterKeyBytes } from '../../src/domain/model/keys.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { testClock } from './clock.ts'

/** Settings that block nothing by a list. The rules on unverified messages have no settings. */
export const guardOff: GuardSettings = {
  mode: 'enforce',
  countries: [],
  deniedCountries: [],
  allowedNumberTypes: [],
  trusted: { prefixes: [], addresses: [] },
  totalPerDay: 0,
}

/** Creates a guard on a real store, called as sends and verifications call it. */
export function createGuardFixture(store: Store, settings: GuardSettings, clock = testClock()) {
  const faults: unknown[] = []
  const alerts: GuardAlert[] = []
  const keys = deriveKeys(new Uint8Array(masterKeyBytes).fill(7))
  const guard = createGuard({ settings, keys, onFault: (error) => void faults.push(error) })
  let lastNumber = 0

  /** Creates a request with a phone of its own. Phones differ in the digits before the last four. */
  function createRequest(overrides: Partial<GuardedMessage> = {}): GuardedMessage {
    lastNumber++
    return {
      developerId: 'dev_1',
      environment: 'live',
      phone: `+316${String(lastNumber).padStart(4, '0')}0000`,
      country: 'NL',
      clientIp: null,
      provider: null,
      createdAt: clock.now(),
      resends: 0,
      costlyType: null,
      ...overrides,
    }
  }

  const evaluate = async (request: GuardedMessage, sender = stranger) => {
    const verdict = await withGuard(guard, (trackedGuard) =>
      store.write((tx) => trackedGuard.evaluate(tx, request, sender, clock.now())),
    )
    if (verdict.alert) alerts.push(verdict.alert)
    return verdict
  }

  return {
    clock,
    guard,
    faults,
    alerts,
    createRequest,
    evaluate,
    /** Sends `count` times. @returns the last request, and the verdict on each */
    async send(count: number, overrides: Partial<GuardedMessage> = {}, sender = stranger) {
      const rules: string[] = []
      let request = createRequest(overrides)
      for (let sent = 0; sent < count; sent++) {
        request = createRequest(overrides)
        rules.push((await evaluate(request, sender)).violatedRules.join(' '))
      }
      return { request, rules }
    },
    verify: (request: GuardedMessage, sender = stranger) =>
      withGuard(guard, (trackedGuard) =>
        store.write((tx) => trackedGuard.recordConversion(tx, request, sender, clock.now())),
      ),
    revert: (request: GuardedMessage) =>
      store.write((tx) => guard.revertCounts(tx, request, stranger, clock.now())),
  }
}

/** An end user about whom nothing is known. */
export const stranger: Sender = { isKnownPhone: false, contexts: [] }
