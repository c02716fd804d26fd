import type { Log } from '../log/log.ts'
import { ForeignCommitError } from '../store/engine/errors.ts'
import { MigrationError } from '../store/engine/migrations.ts'
import { StartRefused } from '../store/data-dir/data-dir.ts'
import { systemWorld } from '../world/system.ts'
import type { Invariant, World } from '../world/world.ts'

/** Logs why the server must exit. */
export function logFault(log: Log, error: unknown) {
  const isKeyFault = error instanceof ForeignCommitError || error instanceof StartRefused
  if (isKeyFault)
    log.error('the keys were replaced, and this server has no master key for the new ones; it exits', {
      error: error instanceof ForeignCommitError ? error.cause : error,
    })
  else if (error instanceof MigrationError)
    log.error('the database was migrated, and this version must not serve it any more; it drains and exits', {
      cause: error.message,
      remedy: error.remedy,
    })
  else
    log.error('a disk write failed during a commit, so its outcome is unknown; the server exits', { error })
}

/**
 * Creates the world of a server that runs on Bun: it logs and counts an invariant that does not hold, and goes on. For those
 * who rely on it, a wrong counter is better than no service.
 */
export const createServerWorld = (log: Log, count: (invariant: Invariant) => void): World => ({
  ...systemWorld,
  onBroken(invariant, detail) {
    log.error('an invariant does not hold: this is a bug in otpd; please report it', { invariant, detail })
    count(invariant)
  },
})
