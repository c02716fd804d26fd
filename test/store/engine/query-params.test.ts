import { and, asc, eq, gte, sql } from 'drizzle-orm'
import { beforeAll, expect, test } from 'bun:test'
import {
  type FilterPlaceholders,
  orderByLimit,
  prepareFiltered,
} from '../../../src/store/engine/query-params.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'

type Filter = { prefix: string; since?: number | undefined; values?: readonly number[]; limit: number }

describeEachDatabase('a query with optional filters', (database) => {
  let builds = 0
  let list: (filter: Filter) => Promise<Array<{ value: number }>>

  beforeAll(async () => {
    const { tables, read, write } = database()
    const { counters } = tables
    const rows = ['a', 'b'].flatMap((prefix) =>
      Array.from({ length: 9 }, (_, i) => ({ name: `${prefix}${i}`, value: i + 1 })),
    )
    await write(async (tx) => void (await tx.insert(counters).values(rows)))
    list = prepareFiltered(database(), ({ prefix, since, values, limit }: FilterPlaceholders<Filter>) => {
      builds++
      return read
        .select({ value: counters.value })
        .from(counters)
        .where(
          and(
            eq(sql`substr(${counters.name}, 1, 1)`, prefix),
            since && gte(counters.value, since),
            values && sql`${counters.value} in ${values}`,
          ),
        )
        .orderBy(orderByLimit(asc(counters.value), limit))
    })
  })

  const listValues = async (filter: Omit<Filter, 'prefix'>) =>
    (await list({ prefix: 'a', ...filter })).map(({ value }) => value)

  test('applies only the filters that are set', async () => {
    expect(await listValues({ limit: 20 })).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(await listValues({ limit: 2, since: undefined })).toEqual([1, 2])
    expect(await listValues({ limit: 2, since: 4 })).toEqual([4, 5])
    expect(await listValues({ limit: 20, since: 8, values: [1, 9] })).toEqual([9])
  })

  test('is built once per combination of filters, for all values', async () => {
    builds = 0
    for (const since of [3, 8, 3]) {
      expect(await listValues({ limit: 1, since, values: [since] })).toEqual([since])
    }
    expect(builds).toBe(1)
  })

  test('accepts lists of any length, and is built for few lengths', async () => {
    builds = 0
    for (let length = 1; length <= 9; length++) {
      const values = Array.from({ length }, (_, i) => i + 1)
      expect(await listValues({ limit: 20, values })).toEqual(values)
    }
    expect(builds).toBe(5)
  })
})
