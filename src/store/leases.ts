import { and, eq, like, lte, sql } from 'drizzle-orm'
import type { Clock } from '../domain/model/clock.ts'
import type { LeaseStore } from '../domain/store/leases.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'
import { transactionTime } from './transaction-time.ts'

/** The lease of a node. Its owner is the node, so a process that takes the place of a lost one need not wait. */
const nodePrefix = 'node/'
/** More than a send writes into all of its tables and indexes. */
const pagesBytes = 256 * 1024

/** Stores the leases that nodes hold. @param clock see `transactionTime` */
export function createLeaseStore(connection: Connection, clock: Clock | undefined): LeaseStore {
  const { database, executor } = connection
  const { leases } = database.tables
  const rows = onTable(executor, leases)
  const now = () => transactionTime(connection, clock)
  const isLease = ({ name, owner, epoch }: { name: string; owner: string; epoch: number }) =>
    and(eq(leases.name, name), eq(leases.owner, owner), eq(leases.epoch, epoch))

  const acquire: LeaseStore['acquire'] = async ({ name, owner, durationMs }) => {
    const at = await now()
    const until = at + durationMs
    const nextEpoch = sql`case when ${leases.owner} = ${owner} then ${leases.epoch} else ${leases.epoch} + 1 end`
    // If another transaction changes the row meanwhile, the condition is checked again with what that one wrote.
    const row = await rows.put(
      { name, owner, until, epoch: 1 },
      {
        target: leases.name,
        set: { owner, until, epoch: nextEpoch },
        setWhere: sql`${leases.owner} = ${owner} or ${leases.until} <= ${at}`,
      },
    )
    return row && { name, owner, epoch: row.epoch }
  }

  return {
    now,
    acquire,

    async isHeld(lease) {
      await database.lock(executor, leases, leases.name, lease.name)
      return (await rows.find(isLease(lease))) !== undefined
    },

    async release(lease) {
      await rows.update({ until: 0 }, isLease(lease))
    },

    async renewNode(node, durationMs) {
      await acquire({ name: nodePrefix + node, owner: node, durationMs })
    },

    async takePages(node) {
      const name = `pages/${node}`
      // Random, since a text that can be compressed would fit into one page.
      const owner = database.world.random(Buffer.alloc(pagesBytes)).toString('base64')
      await rows.insert({ name, owner, until: 0, epoch: 0 })
      await rows.delete(eq(leases.name, name))
    },

    async deleteLostNodes() {
      const isNode = like(leases.name, `${nodePrefix}%`)
      await rows.delete(and(isNode, lte(leases.until, await now())))
      return (await rows.list(isNode)).map(({ owner }) => owner)
    },
  }
}
