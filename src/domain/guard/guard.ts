import { GuardFault, type GuardAlert } from '../model/guard.ts'
import type { Keys } from '../model/keys.ts'
import { createGuardJudge, type GuardJudge } from './judge.ts'
import { isTrustedPhone, type GuardSettings } from './settings.ts'

/** SMS-pumping protection. */
export type Guard = GuardJudge & {
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
  let { settings: currentSettings } = needs
  let current = createGuardJudge(currentSettings, needs.keys)
  return {
    refusedChannels: (...args) => orFault(() => current.refusedChannels(...args)),
    keysToJudge: (...args) => orFault(() => current.keysToJudge(...args)),
    keysToConvert: (...args) => orFault(() => current.keysToConvert(...args)),
    keysToRevert: (...args) => orFault(() => current.keysToRevert(...args)),
    judge: (...args) => orFault(() => current.judge(...args)),
    convert: (...args) => orFault(() => current.convert(...args)),
    revert: (...args) => orFault(() => current.revert(...args)),
    onFault: needs.onFault,
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

/** @throws GuardFault instead of any other error, so that `withGuard` knows it */
function orFault<T>(call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw new GuardFault(error)
  }
}
