import type { Clock } from '../model/clock.ts'
import type { HeldLease } from '../store/leases.ts'
import type { Store } from '../store/store.ts'
import { secondMs } from '../../shared/durations.ts'

/** Lease of the leader and of each node. A node that is lost is replaced after this time. */
export const nodeLeaseMs = 15 * secondMs
/** How often a node renews its leases: one failed attempt loses none. */
export const renewalMs = 5 * secondMs

/** Another node leads, so this one must not go on. */
export class LeadershipLostError extends Error {
  override readonly name = 'LeadershipLostError'

  constructor() {
    super('another node leads')
  }
}

/** Decides which node runs the backfills: only one does at a time. */
export type Leadership = {
  /** Whether this node led when it last asked, and its lease has not run out. Work that must not run twice uses `fence`. */
  isLeader(): boolean
  /**
   * Returns a store whose transactions fail unless this node leads until they commit: each checks the fencing token and
   * locks the lease. Operations (`decide`) are only checked before they start: each guards itself by the state of its rows.
   *
   * @throws LeadershipLostError from `write` and `decide`
   */
  fence(store: Store): Store
  /** Runs a task if this node leads. A task that loses the lead ends without an error; the next leader goes on. */
  run(task: () => Promise<unknown>): Promise<void>
}

/** The leadership of a database that one process owns (SQLite). */
export const soleLeadership: Leadership = {
  isLeader: () => true,
  fence: (store) => store,
  run: async (task) => void (await task()),
}

/**
 * Creates the leader election of nodes that share a database: a lease in the database, by its clock. Neither a session of
 * the database nor a lock is held between transactions, so it works through a transaction pooler.
 *
 * @param needs.owner unique for each process, past and present
 * @param needs.node name of this node, which has a lease of its own
 * @param needs.onChange called when this node begins or ceases to lead
 */
export function createLeaderElection(needs: {
  store: Store<'leases' | 'providerCircuits'>
  clock: Clock
  owner: string
  node: string
  onChange(isLeader: boolean): void
}) {
  const { store, clock, owner, node, onChange } = needs
  let held: HeldLease | undefined
  /** By the process's clock, counted from before the renewal: the lease lasts at least so long. */
  let heldUntil = -Infinity
  let hasLed = false

  const current = () => (clock.now() < heldUntil ? held : undefined)

  function noteChange() {
    const leads = current() !== undefined
    if (leads !== hasLed) onChange(leads)
    hasLed = leads
  }

  function lose(): never {
    held = undefined
    noteChange()
    throw new LeadershipLostError()
  }

  const leadership: Leadership = {
    isLeader: () => current() !== undefined,

    fence: (fenced) => ({
      read: fenced.read,
      whenDurable: fenced.whenDurable,
      changes: fenced.changes,
      write(body, options) {
        const lease = current() ?? lose()
        return fenced.write(async (tx) => {
          if (!(await tx.leases.isHeld(lease))) lose()
          return body(tx)
        }, options)
      },
      async decide(operation) {
        if (!current()) lose()
        return fenced.decide(operation)
      },
    }),

    async run(task) {
      if (!current()) return
      try {
        await task()
      } catch (error) {
        if (!(error instanceof LeadershipLostError)) throw error
      }
    },
  }

  return {
    ...leadership,

    /**
     * Renews the lease of the node, and takes or renews that of the leader. The leader forgets the circuits of nodes that
     * were lost. Call it every `renewalMs`.
     */
    async renew(): Promise<void> {
      const from = clock.now()
      try {
        held = await store.write(
          async (tx) => {
            // Lock order: the leader, then nodes.
            const lease = await tx.leases.acquire({ name: leaderName, owner, durationMs: nodeLeaseMs })
            await tx.leases.renewNode(node, nodeLeaseMs)
            if (lease) await tx.providerCircuits.clearAllBut(await tx.leases.deleteLostNodes())
            return lease
          },
          { isUrgent: true },
        )
        heldUntil = from + nodeLeaseMs
      } finally {
        noteChange()
      }
    },

    /** Gives up the lead, so that another node takes it at its next renewal. */
    async release(): Promise<void> {
      const lease = held
      held = undefined
      if (lease) await store.write((tx) => tx.leases.release(lease))
    },
  }
}

const leaderName = 'leader'
