import { expect, test } from 'bun:test'
import { describeEachDatabase, openTestSqlite } from '../helpers/databases.ts'
import { record } from './record.ts'

const calls = 200

async function recordLines(bytesSeed: number): Promise<string[]> {
  const { database, dispose } = await openTestSqlite()
  const lines: string[] = []
  await record(database, { seed: 1, calls, bytesSeed }, (line) => void lines.push(line))
  await dispose()
  return lines
}

test('a record repeats, and does not depend on random bytes', async () => {
  const lines = await recordLines(1)
  expect(await recordLines(2)).toEqual(lines)
  const statuses = new Set(lines.map((line) => Number(/"status":(\d{3})/.exec(line)?.[1])))
  for (const status of [200, 201, 400, 404, 409, 410, 502]) expect(statuses).toContain(status)
}, 60_000)

describeEachDatabase('a record', (database) => {
  test('covers responses, messages and rows', async () => {
    const kinds = new Set<string>()
    await record(database(), { seed: 2, calls: 30 }, (line) => void kinds.add(line.slice(2, 7)))
    expect(kinds).toEqual(new Set(['numbe', 'messa', 'table']))
  }, 60_000)
})
