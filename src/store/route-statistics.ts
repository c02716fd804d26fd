import { gte, inArray, lt } from 'drizzle-orm'
import type { RouteStatisticsRow, RouteStatisticsStore } from '../domain/store/route-statistics.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'
import { columnsOf, insertInto } from './engine/row-writes.ts'

/** Both databases store counts as integers: in thousandths of an outcome. */
const thousandths = 1_000

const emptyRow = { outcomes: 0, verified: 0, at: 0, verifiedSentAt: 0, silentSince: 0, updatedAt: 0 }

/** Stores the statistics that the strategies of routes learn from. */
export function createRouteStatisticsStore({ database, executor }: Connection): RouteStatisticsStore {
  const { routeStatistics: table } = database.tables
  const rows = onTable(executor, table)
  const columns = columnsOf<typeof table, RouteStatisticsRow>(table, {
    outcomes: ({ outcomes }) => Math.round(outcomes * thousandths),
    verified: ({ verified }) => Math.round(verified * thousandths),
  })
  const writeRows = database.writeRows(
    executor,
    insertInto(columns, { onConflict: { key: ['cell'], others: 'replace' } }),
  )
  const list = async (...condition: Parameters<typeof rows.list>): Promise<RouteStatisticsRow[]> =>
    (await rows.list(...condition)).map((row) => ({
      ...row,
      outcomes: row.outcomes / thousandths,
      verified: row.verified / thousandths,
    }))

  return {
    listUpdated: (since) => list(gte(table.updatedAt, since)),

    async lock(cells) {
      for (const cell of cells) {
        if ((await database.lock(executor, table, table.cell, cell)) === 'locked') continue
        // A row to lock, so that another node that counts the cell for the first time waits.
        await rows.insertMissing({ ...emptyRow, cell })
        await database.lock(executor, table, table.cell, cell)
      }
      return cells.length === 0 ? [] : list(inArray(table.cell, [...cells]))
    },

    async save(changed) {
      writeRows(changed)
    },

    deleteOlder: (before) => rows.delete(lt(table.updatedAt, before)),
  }
}
