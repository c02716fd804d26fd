import type { Clock } from '../domain/model/clock.ts'
import type { Store } from '../domain/store/store.ts'
import {
  createLeaderElection,
  renewalMs,
  soleLeadership,
  type Leadership,
} from '../domain/upkeep/leadership.ts'
import type { Log } from '../log/log.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Cleanups } from './shutdown.ts'
import type { World } from '../world/world.ts'

/** Name of the node of a database on SQLite, which is the only one. */
export const soleNodeName = 'local'

/** This node of an installation. */
export type Node = {
  /** Unique among the nodes that run at the same time. */
  name: string
  /** Whether this process alone serves the database (SQLite). */
  isSole: boolean
}

/**
 * Takes part in the leader election, if there may be other nodes, and says so in the database as long as this one lives.
 * Call it before the workers start: their cleanups then run before this one, which gives up the lead.
 */
export async function startLeadership(
  node: Node,
  needs: { store: Store; clock: Clock; log: Log; cleanups: Cleanups; world: World },
): Promise<Leadership> {
  if (node.isSole) return soleLeadership
  const { store, clock, log, cleanups, world } = needs
  const election = createLeaderElection({
    store,
    clock,
    owner: world.uuid(),
    node: node.name,
    onChange: (isLeader) =>
      log.info(isLeader ? 'this node became the leader' : 'this node is no longer the leader'),
  })
  await election.renew()
  cleanups.push(election.release)
  cleanups.push(startPeriodicTask(renewalMs, world, log, election.renew))
  return election
}
