import { and, eq, lte } from 'drizzle-orm'
import type { IdempotencyScope } from '../domain/model/idempotency.ts'
import type { Sealing } from './engine/sealing.ts'
import type { IdempotencyRecord, IdempotencyStore } from '../domain/store/idempotency.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import { columnsOf, insertInto } from './engine/row-writes.ts'

/** Stores idempotency keys with the results of their requests. */
export function createIdempotencyStore(connection: Connection): IdempotencyStore {
  const { database, executor, sealing } = connection
  const { idempotencyKeys: keys } = database.tables
  const rows = onTable(executor, keys)
  const matchesScope = (scope: IdempotencyScope) =>
    and(eq(keys.caller, scope.caller), eq(keys.route, scope.route), eq(keys.key, scope.key))

  const find = prepareFind(connection, keys, 'caller', 'route', 'key')
  const columns = columnsOf<typeof keys, IdempotencyScope & { answer: string; createdAt: number }>(keys, {
    answer: (row) => sealing.sealText('idempotency_keys.answer', idempotencyRow(row), row.answer),
  })
  const onConflict = { key: ['caller', 'route', 'key'], others: 'replace' } as const
  const save = database.writeRows(executor, insertInto(columns, { onConflict }))

  return {
    async claim(scope, now, expiredBefore) {
      const { caller, route, key, bodyHash } = scope
      const claimed = await rows.put(
        { caller, route, key, bodyHash, createdAt: now },
        {
          target: [keys.caller, keys.route, keys.key],
          set: { bodyHash, answer: null, createdAt: now },
          setWhere: lte(keys.createdAt, expiredBefore),
        },
      )
      const row = claimed ? undefined : await find(scope)
      return row && openAnswer(sealing, scope, row)
    },

    save: (answers) => save(answers.map(({ scope, answer, at }) => ({ ...scope, answer, createdAt: at }))),

    async finish(scope, result) {
      const answer = sealing.sealText('idempotency_keys.answer', idempotencyRow(scope), result)
      await rows.update({ answer }, matchesScope(scope))
    },

    deleteOldest: (until, batchSize) => deleteOldestByTime(executor, keys.createdAt, { until, batchSize }),
  }
}

/** Decrypts the result in a row, if it has one. */
export function openAnswer(
  sealing: Sealing,
  scope: Pick<IdempotencyScope, 'caller' | 'route' | 'key'>,
  row: IdempotencyRecord,
): IdempotencyRecord {
  if (row.answer === null) return row
  const answer = sealing.openText('idempotency_keys.answer', idempotencyRow(scope), row.answer)
  if (answer === null) throw new Error('the stored result of an idempotent call cannot be decrypted')
  return { ...row, answer }
}

/** Names a row in the associated data of its sealed result. None of the three contains a line break. */
export const idempotencyRow = ({ caller, route, key }: Pick<IdempotencyScope, 'caller' | 'route' | 'key'>) =>
  `${caller}\n${route}\n${key}`
