import type { Log } from '../log/log.ts'

/** Undoes the steps of the start, in the order of the start; `shutdown` runs them in reverse. */
export type Cleanups = Array<() => unknown>

/**
 * Graceful shutdown takes at most ten seconds, and `drainSeconds` before them: up to one second to drain keep-alive
 * connections, then the requests in progress, then the messages and webhooks that they caused.
 */
export const requestsDrainMs = 7_000
export const messagesDrainMs = 500
export const webhooksDrainMs = 1_000

/**
 * Graceful shutdown: runs the cleanups in reverse order. A cleanup that fails is logged and does not stop the rest.
 * `cli/host/run-server.ts` starts it on SIGINT and SIGTERM.
 */
export async function shutdown(cleanups: Cleanups, log: Log): Promise<void> {
  for (const cleanup of cleanups.splice(0).toReversed()) {
    try {
      await cleanup()
    } catch (error) {
      log.error('a part of the server did not shut down cleanly', { error })
    }
  }
}
