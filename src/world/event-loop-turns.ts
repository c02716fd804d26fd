import type { World } from './world.ts'

/** Time that the requests of one turn of the event loop may take. */
const turnMsMax = 50

/**
 * Creates a wait for requests, so that they leave turns of the event loop to everything else. Bun accepts connections, and
 * handles the requests that came with them, until no more wait: clients that connect again after each response could keep
 * the loop from writes, timers and other connections.
 *
 * @returns a function that is called before each request; undefined if there is no need to wait. Bun answers pipelined
 *   requests only if nothing waits for the next turn.
 */
export function createTurnLimit({ monotonic, timers }: Pick<World, 'monotonic' | 'timers'>) {
  /** When the first request of this turn arrived. */
  let startedAt: number | undefined
  return (): Promise<void> | undefined => {
    if (startedAt === undefined) {
      startedAt = monotonic()
      timers.setImmediate(() => (startedAt = undefined))
      return undefined
    }
    return monotonic() - startedAt < turnMsMax ? undefined : timers.nextTurn()
  }
}
