import { randomUUID } from 'node:crypto'
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
  { store, clock, log, cleanups }: { store: Store; clock: Clock; log: Log; cleanups: Cleanups },
): Promise<Leadership> {
  if (node.isSole) return soleLeadership
  const election = createLeaderElection({
    store,
    clock,
    owner: randomUUID(),
    node: node.name,
    onChange: (isLeader) => log.info(isLeader ? 'this node leads now' : 'this node leads no longer'),
  })
  await election.renew()
  cleanups.push(election.release)
  cleanups.push(startPeriodicTask(renewalMs, log, election.renew))
  return election
}
