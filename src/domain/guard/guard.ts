import { GuardFault, type GuardAlert } from '../model/guard.ts'
import type { Keys } from '../model/keys.ts'
import { noGuardChanges, type GuardRows } from '../store/guard.ts'
import { createGuardJudge, passUncounted, type GuardJudge } from './judge.ts'
import { isTrustedPhone, type GuardSettings } from './settings.ts'

/**
 * SMS-pumping protection. It fails open, since a user waiting for a code matters more than a count: where one of its
 * functions fails, that is reported, and the message passes uncounted. If its rows cannot be read or written, the store runs
 * the operation again without them (`GuardRows.fault`).
 */
export type Guard = GuardJudge & {
  /** Called when the guard itself fails. */
  onFault(error: unknown): void
  /** Called with a new alert and the application whose message raised it, after its transaction. */
  onAlert(alert: GuardAlert, sender: AlertedSender): void
}

/** The application whose message raised an alert. */
export type AlertedSender = { developerId: string; appId: string }

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
  onAlert?(alert: GuardAlert, sender: AlertedSender): void
}): Guard & {
  configure(settings: GuardSettings): void
  settings(): GuardSettings
  isTrustedPhone(phone: string): boolean
} {
  const { onFault } = needs
  let { settings } = needs
  let current = createGuardJudge(settings, needs.keys)

  /** Calls a function of the guard. @returns `instead` if it fails, or if the rows cannot be read or written */
  function orElse<T>(instead: () => T, call: () => T, rows?: GuardRows): T {
    try {
      if (!rows?.fault) return call()
      onFault(rows.fault.cause)
    } catch (error) {
      // The store runs the operation again without the guard.
      if (error instanceof GuardFault) throw error
      onFault(error)
    }
    return instead()
  }
  const always = () => true
  const none = () => undefined
  const noChannels = () => []

  return {
    isExempt: (...args) => orElse(always, () => current.isExempt(...args)),
    refusedChannels: (...args) => orElse(noChannels, () => current.refusedChannels(...args)),
    keysToJudge: (...args) => orElse(none, () => current.keysToJudge(...args)),
    keysToConvert: (...args) => orElse(none, () => current.keysToConvert(...args)),
    keysToRevert: (...args) => orElse(none, () => current.keysToRevert(...args)),
    judge: (rows, ...args) => orElse(passUncounted, () => current.judge(rows, ...args), rows),
    convert: (rows, ...args) => orElse(noGuardChanges, () => current.convert(rows, ...args), rows),
    revert: (rows, ...args) => orElse(noGuardChanges, () => current.revert(rows, ...args), rows),
    onFault,
    onAlert: (alert, sender) => needs.onAlert?.(alert, sender),
    /** Applies new settings from the next message on. Counts are kept. */
    configure(changed) {
      settings = changed
      current = createGuardJudge(settings, needs.keys)
    },
    /** Returns the settings in effect. */
    settings: () => settings,
    /** Tells whether the settings in effect let all messages to a number pass. */
    isTrustedPhone: (phone) => isTrustedPhone(settings, phone),
  }
}
