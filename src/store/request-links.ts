import { eq, sql, type SQL } from 'drizzle-orm'
import type { OtpRequestStore } from '../domain/store/otp-requests.ts'
import type { Connection } from './engine/connection.ts'
import { prepareFindColumns } from './engine/on-table.ts'
import { pageAfter } from './engine/page-after.ts'
import { isSealed } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

/**
 * Matches some requests, and those before each of them in the list of its phone.
 *
 * @param isFirst matches the requests that the lists begin with
 * @param count requests of each list
 */
export const isInPhoneList = ({ otpRequests: otp }: Pick<Tables, 'otpRequests'>, isFirst: SQL, count: SQL) =>
  sql`${otp.id} in (
    with recursive list (id, previous, number) as (
      select id, previous_request, 1 from ${otp} where ${isFirst}
      union all
      select one.id, one.previous_request, list.number + 1
        from list join ${otp} as one on one.id = list.previous
        where list.number < ${count}
    ) select id from list)`

/** Stores the links that make a list of the requests of each phone. */
export function createRequestLinks(
  connection: Connection,
): Pick<OtpRequestStore, 'findPrevious' | 'listUnsealed' | 'setPrevious'> {
  const { database, executor } = connection
  const { otpRequests: otp } = database.tables
  const p = sql.placeholder

  const findPrevious = prepareFindColumns(connection, otp, { previousRequest: otp.previousRequest }, 'id')
  const setPrevious = database.prepare(() =>
    executor
      .update(otp)
      .set({ previousRequest: sql`${p('previous')}` })
      .where(eq(otp.id, p('id'))),
  )

  return {
    async findPrevious(id) {
      return (await findPrevious({ id }))?.previousRequest ?? undefined
    },

    async setPrevious(id, previous) {
      await setPrevious({ id, previous })
    },

    async listUnsealed(after, limit) {
      const { id, developerId, environment, phone, country } = otp
      const columns = { id, developerId, environment, phone, country }
      const rows = await pageAfter(executor, columns, id, after, limit)
      const firstSealed = rows.findIndex((row) => isSealed(row.phone))
      return firstSealed === -1 ? rows : rows.slice(0, firstSealed)
    },
  }
}
