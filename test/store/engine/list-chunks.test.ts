import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { createListChunkReader, createListChunkWriter } from '../../../src/store/engine/list-chunks.ts'
import type { KeyCursor } from '../../../src/store/engine/key-cursors.ts'

const numberKey = fc.nat({ max: 40_000 }).map((number) => number.toString(16).padStart(11, '0'))
const idKey = fc
  .tuple(fc.nat({ max: 999 }), fc.stringMatching(/^[0-9a-z]{4,50}$/))
  .map(([time, random]) => `idn_${time}${random}:0000000000001`)
const keySets = fc.oneof(
  // By default few have more than ten keys, which is one chunk.
  fc.uniqueArray(numberKey, { maxLength: 900, size: 'max' }),
  fc.uniqueArray(idKey, { maxLength: 300, size: 'max' }),
)

function openChunks() {
  const connection = new Database(':memory:')
  connection.run(
    'create table list_chunks (owner any, list text, first text, keys text, primary key (owner, list, first)) strict, without rowid',
  )
  return {
    writer: createListChunkWriter(connection),
    reader: createListChunkReader((sql) => connection.prepare(sql)),
  }
}

function readAll(next: KeyCursor): string[] {
  const keys: string[] = []
  for (let key = next(); key !== undefined; key = next()) keys.push(key)
  return keys
}

test('chunks hold the keys that were added and not removed, from any position in both directions', () => {
  fc.assert(
    fc.property(keySets, keySets, fc.nat(), (first, second, seed) => {
      const { writer, reader } = openChunks()
      writer.update(1, 'other', ['00000000001'], [])
      writer.update(1, 'list', first.toSorted(), [])
      const added = second.toSorted()
      const removed = first
        .filter((key, index) => (index + seed) % 3 === 0 && !added.includes(key))
        .toSorted()
      writer.update(1, 'list', added, removed)
      const expected = [...new Set([...first, ...second])].filter((key) => !removed.includes(key)).toSorted()
      expect(readAll(reader.descending(1, 'list'))).toEqual(expected.toReversed())
      for (const bound of [expected[seed % (expected.length || 1)] ?? '0', removed[0] ?? 'idn_5', '0', 'z']) {
        expect(readAll(reader.ascending(1, 'list', bound))).toEqual(expected.filter((key) => key > bound))
        expect(readAll(reader.descending(1, 'list', bound))).toEqual(
          expected.filter((key) => key < bound).toReversed(),
        )
      }
    }),
    { numRuns: 150 },
  )
})
