import { Database as SqliteConnection } from 'bun:sqlite'
import { asc, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { alias, customType, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { expect, test } from 'bun:test'
import type { Preparable } from '../../../src/store/engine/database.ts'
import { prepareOnSqlite } from '../../../src/store/sqlite/prepare.ts'

const colours = ['red', 'green']
const colour = customType<{ data: string; driverData: number }>({
  dataType: () => 'integer',
  toDriver: (colourName) => colours.indexOf(colourName),
  fromDriver: (number) => colours[number] ?? '',
})
const birds = sqliteTable('birds', {
  birdId: text('bird_id'),
  colour: colour('colour'),
  age: integer('age_years'),
})
const mates = alias(birds, 'mates')

function openBirds() {
  const connection = new SqliteConnection(':memory:')
  connection.run('create table birds (bird_id text, colour integer, age_years integer)')
  const db = drizzle(connection)
  // The types of drizzle's synchronous queries differ from the store's.
  const prepare = <R>(build: () => unknown) => prepareOnSqlite(build as () => Preparable<R>)
  const p = sql.placeholder
  return {
    connection,
    insert: prepare(() =>
      db
        .insert(birds)
        .values({ birdId: p('id'), colour: p('colour'), age: 1 })
        .returning(),
    ),
    listByColour: prepare(() =>
      db
        .select({ id: birds.birdId, seen: birds.colour, next: sql`${birds.age} + 1`.mapWith(String) })
        .from(birds)
        .where(sql`${birds.colour} = ${sql.param(p('colour'), birds.colour)}`)
        .orderBy(asc(birds.birdId)),
    ),
    all: prepare(() => db.select().from(birds).orderBy(asc(birds.birdId))),
    listWithMates: prepare(() =>
      db
        .select({ bird: birds, mate: { id: mates.birdId, colour: mates.colour } })
        .from(birds)
        .leftJoin(mates, sql`${mates.colour} = ${birds.colour} and ${mates.birdId} <> ${birds.birdId}`)
        .orderBy(asc(birds.birdId)),
    ),
    rename: prepare(() => db.update(birds).set({ birdId: sql`${p('id')}` })),
  }
}

test('rows have field names and decoded values', async () => {
  const { insert, listByColour, all } = openBirds()
  expect(await insert({ id: 'b', colour: 'green' })).toEqual([{ birdId: 'b', colour: 'green', age: 1 }])
  expect(await insert({ id: 'a', colour: null })).toEqual([{ birdId: 'a', colour: null, age: 1 }])
  expect(await listByColour({ colour: 'green' })).toEqual([{ id: 'b', seen: 'green', next: '2' }])
  expect(await listByColour({ colour: 'red' })).toEqual([])
  expect(await all()).toEqual([
    { birdId: 'a', colour: null, age: 1 },
    { birdId: 'b', colour: 'green', age: 1 },
  ])
})

test('rows of joins are nested objects, null where an outer join found no row', async () => {
  const { insert, listWithMates } = openBirds()
  await insert({ id: 'a', colour: 'green' })
  await insert({ id: 'b', colour: null })
  await insert({ id: 'c', colour: 'green' })
  expect(await listWithMates()).toEqual([
    { bird: { birdId: 'a', colour: 'green', age: 1 }, mate: { id: 'c', colour: 'green' } },
    { bird: { birdId: 'b', colour: null, age: 1 }, mate: null },
    { bird: { birdId: 'c', colour: 'green', age: 1 }, mate: { id: 'a', colour: 'green' } },
  ])
})

test('columns hold encoded values', async () => {
  const { connection, insert } = openBirds()
  await insert({ id: 'a', colour: 'green' })
  expect(connection.query('select * from birds').all()).toEqual([{ bird_id: 'a', colour: 1, age_years: 1 }])
})

test('a missing value, or one of an unsupported type, is rejected', () => {
  const { rename } = openBirds()
  expect(() => rename()).toThrow('a prepared query lacks a value for id')
  expect(() => rename({ id: true })).toThrow('a column must hold text, a number or null')
})
