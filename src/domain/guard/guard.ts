import { GuardFault, type GuardAlert } from '../model/guard.ts'
import type { Keys } from '../model/keys.ts'
import type { GuardRows } from '../store/guard.ts'
import { noGuardChanges, readGuardFacts, type GuardFacts } from './facts.ts'
import { createGuardJudge, type GuardJudge } from './judge.ts'
import type { GuardKeys } from './row-keys.ts'
import { isTrustedPhone, type GuardSettings } from './settings.ts'

/**
 * SMS-pumping protection. It fails open, since a user waiting for a code matters more than a count: where one of its
 * functions fails, that is reported, and the message passes uncounted. If its rows cannot be read or written, the store runs
 * the operation again without them (`GuardRows.fault`).
 */
export type Guard = GuardJudge & {
  /** As `readGuardFacts`. @returns undefined also if the rows cannot be read or written */
  readFacts(rows: GuardRows, keys: GuardKeys | undefined): GuardFacts | undefined
  /** Called when the guard itself fails. */
  onFault(error: unknown): void
  /** Called with a new alert, after its transaction. */
  onAlert(alert: GuardAlert): void
}

/**
 * Creates the guard against SMS pumping: fraud that makes applications send codes to numbers that earn money
 * per message. Everything is counted per developer: a second application gains nothing, and no developer can close a
 * country for another.
 *
 * Blocked messages do not count as unverified: the limits bound what is sent, and a continuing attack does
 * not prolong the block.
 */
export function createGuard(needs: {
  settings: GuardSettings
  keys: Pick<Keys, 'guard'>
  onFault(error: unknown): void
  onAlert?(alert: GuardAlert): void
}): Guard & {
  configure(settings: GuardSettings): void
  settings(): GuardSettings
  isTrustedPhone(phone: string): boolean
} {
  const { onFault } = needs
  let { settings: currentSettings } = needs
  let current = createGuardJudge(currentSettings, needs.keys)

  /** Calls a function of the guard. @returns `instead` if it fails */
  function orElse<T>(instead: () => T, call: () => T): T {
    try {
      return call()
    } catch (error) {
      // The store runs the operation again without the guard.
      if (error instanceof GuardFault) throw error
      onFault(error)
      return instead()
    }
  }
  const none = () => undefined

  return {
    refusedChannels: (...args) =>
      orElse(
        () => [],
        () => current.refusedChannels(...args),
      ),
    keysToJudge: (...args) => orElse(none, () => current.keysToJudge(...args)),
    keysToConvert: (...args) => orElse(none, () => current.keysToConvert(...args)),
    keysToRevert: (...args) => orElse(none, () => current.keysToRevert(...args)),
    readFacts(rows, keys) {
      if (!rows.fault) return orElse(none, () => readGuardFacts(rows, keys))
      onFault(rows.fault.cause)
      return undefined
    },
    judge: (...args) => orElse(passUncounted, () => current.judge(...args)),
    convert: (...args) => orElse(noGuardChanges, () => current.convert(...args)),
    revert: (...args) => orElse(noGuardChanges, () => current.revert(...args)),
    onFault,
    onAlert: (alert) => needs.onAlert?.(alert),
    /** Applies new settings from the next message on. Counts are kept. */
    configure(settings) {
      currentSettings = settings
      current = createGuardJudge(settings, needs.keys)
    },
    /** Returns the settings in effect. */
    settings: () => currentSettings,
    /** Tells whether the settings in effect let all messages to a number pass. */
    isTrustedPhone: (phone) => isTrustedPhone(currentSettings, phone),
  }
}

const passUncounted = (): ReturnType<GuardJudge['judge']> => ({
  verdict: { blocked: false, violatedRules: [] },
  changes: noGuardChanges(),
})
