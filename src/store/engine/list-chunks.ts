import type { Database as SqliteConnection } from 'bun:sqlite'
import { ascendingKeys, descendingKeys, noKeys, type KeyCursor } from './key-cursors.ts'

/**
 * Characters after which a chunk is full. A chunk is rewritten whole for the keys that it gains: longer ones cost more
 * time, shorter ones more room.
 */
const chunkCharactersMax = 400

/** Greater than every key. */
const greatestKey = '~'

/** Owner of a list: the number of a developer or an application, or the id of an endpoint. */
export type ListOwner = number | string

type Chunk = { first: string; keys: string }

/** Prepares a query; its rows are arrays. */
export type PrepareRead = (sql: string) => { values(...values: Array<string | number>): unknown[][] }

/**
 * Reads sorted sets of keys, which are stored in chunks of neighbors. The chunks of a list do not overlap, and each is
 * found by its first key.
 */
export function createListChunkReader(prepare: PrepareRead) {
  const select = 'select first, keys from list_chunks where owner = ? and list = ? and first'
  const below = prepare(`${select} < cast(? as text) order by first desc limit ?`)
  const atOrBelow = prepare(`${select} <= cast(? as text) order by first desc limit ?`)
  const above = prepare(`${select} > cast(? as text) order by first limit ?`)
  const newest = prepare(
    'select first, keys from list_chunks where owner = ? and list = ? order by first desc limit 1',
  )
  const toChunks = (rows: unknown[][]) =>
    rows.map(([first, keys]) => ({ first: String(first), keys: String(keys) }))

  const find = (owner: ListOwner, list: string, key: string): Chunk | undefined =>
    toChunks(atOrBelow.values(owner, list, key, 1))[0]
  const findNext = (owner: ListOwner, list: string, key: string): Chunk | undefined =>
    toChunks(above.values(owner, list, key, 1))[0]

  return {
    /** Finds the chunk whose range includes the key. */
    find,
    findNext,
    findLast: (owner: ListOwner, list: string): Chunk | undefined => toChunks(newest.values(owner, list))[0],

    /** Reads the keys below one, the greatest first. */
    descending: (owner: ListOwner, list: string, before = greatestKey): KeyCursor =>
      readChunks(
        before,
        (bound, count) => toChunks(below.values(owner, list, bound, count)),
        (keys) => descendingKeys(keys, before),
      ),

    /** Reads the keys above one, the lowest first. */
    ascending(owner: ListOwner, list: string, after: string): KeyCursor {
      const start = find(owner, list, after)
      return readChunks(
        start?.first ?? after,
        (bound, count) => toChunks(above.values(owner, list, bound, count)),
        (keys) => ascendingKeys(keys, after),
        start,
      )
    },
  }
}

/** Chunks that are read with one query: a page of a list is in one or two of them, or in six if its keys are long. */
const chunksPerReadMin = 2
const chunksPerReadMax = 16

/**
 * Reads the keys of chunk after chunk.
 *
 * @param read reads chunks beyond the one that begins with `bound`
 * @param chunk read first, if there is one
 */
function readChunks(
  start: string,
  read: (bound: string, count: number) => Chunk[],
  readKeys: (keys: readonly string[]) => KeyCursor,
  chunk?: Chunk,
): KeyCursor {
  let bound: string | undefined = start
  let count = chunksPerReadMin
  let chunks = chunk ? [chunk] : []
  let next = 0
  let rest: KeyCursor = noKeys
  return () => {
    for (;;) {
      const key = rest()
      if (key !== undefined) return key
      if (next === chunks.length) {
        if (bound === undefined) return undefined
        chunks = read(bound, count)
        bound = chunks.length < count ? undefined : chunks.at(-1)?.first
        count = Math.min(2 * count, chunksPerReadMax)
        next = 0
      }
      const following = chunks[next++]
      if (!following) return undefined
      rest = readKeys(decodeKeys(following.keys))
    }
  }
}

/** Changes sorted sets of keys. Applying the same change again changes nothing. */
export function createListChunkWriter(connection: SqliteConnection) {
  const reader = createListChunkReader((sql) => connection.prepare<unknown, Array<string | number>>(sql))
  const put = connection.prepare<never, [ListOwner, string, string, string]>(
    `insert into list_chunks (owner, list, first, keys) values (?, ?, ?, ?)
     on conflict (owner, list, first) do update set keys = excluded.keys`,
  )
  const remove = connection.prepare<never, [ListOwner, string, string]>(
    'delete from list_chunks where owner = ? and list = ? and first = ?',
  )

  return {
    /**
     * Adds and removes keys of one list, inside the transaction that is open.
     *
     * @param added in ascending order
     * @param removed in ascending order; none of them is in `added`
     */
    update(owner: ListOwner, list: string, added: readonly string[], removed: readonly string[]): void {
      let nextAdded = 0
      let nextRemoved = 0
      // Most lists grow at their end: then it is the only chunk that is looked for.
      const last = reader.findLast(owner, list)
      for (;;) {
        const key = lower(added[nextAdded], removed[nextRemoved])
        if (key === undefined) return
        const isAtEnd = last === undefined || last.first <= key
        const chunk = isAtEnd ? last : reader.find(owner, list, key)
        const end = isAtEnd ? undefined : reader.findNext(owner, list, key)?.first
        const addedEnd = findEnd(added, nextAdded, end)
        const removedEnd = findEnd(removed, nextRemoved, end)
        const [gained, lost] = [added.slice(nextAdded, addedEnd), removed.slice(nextRemoved, removedEnd)]
        nextAdded = addedEnd
        nextRemoved = removedEnd
        const grown = chunk && lost.length === 0 && end === undefined ? appendKeys(chunk, gained) : undefined
        const keys = chunk && !grown ? decodeKeys(chunk.keys) : []
        const pieces = grown ?? encodeKeys(mergeKeys(keys, gained, lost), end === undefined)
        if (chunk && pieces[0]?.first !== chunk.first) remove.run(owner, list, chunk.first)
        for (const piece of pieces) {
          if (piece.first !== chunk?.first || piece.keys !== chunk.keys)
            put.run(owner, list, piece.first, piece.keys)
        }
      }
    },
  }
}

const lower = (a: string | undefined, b: string | undefined) =>
  a === undefined || (b !== undefined && b < a) ? b : a

/** Finds the index of the first key from `start` on that is not below `end`. */
function findEnd(keys: readonly string[], start: number, end: string | undefined): number {
  if (end === undefined) return keys.length
  let index = start
  for (let key = keys[index]; key !== undefined && key < end; key = keys[index]) index++
  return index
}

/** Merges sorted keys, without duplicates and without those removed. */
export function mergeKeys(
  keys: readonly string[],
  added: readonly string[],
  removed: readonly string[] = [],
): string[] {
  const left = new Set(removed)
  const merged: string[] = []
  let i = 0
  let j = 0
  for (;;) {
    const key = lower(keys[i], added[j])
    if (key === undefined) return merged
    while (keys[i] === key) i++
    while (added[j] === key) j++
    if (!left.has(key)) merged.push(key)
  }
}

/** Digits of the length of a shared prefix. */
const lengthRadix = 36
const lengthDigits = Array.from({ length: lengthRadix }, (_, length) => length.toString(lengthRadix))

/**
 * Writes sorted keys as chunks, with front coding: neighbors begin alike, so that each key after the first is stored as
 * the number of characters that it shares with the key before it, one digit, and the rest.
 */
function encodeKeys(keys: readonly string[], isAtEnd: boolean): Chunk[] {
  const chunks = encodeChunks(keys, chunkCharactersMax)
  // Lists grow at their end. Elsewhere, equal chunks leave room.
  const characters = chunks.reduce((sum, chunk) => sum + chunk.keys.length, 0)
  return isAtEnd || chunks.length < 2 ? chunks : encodeChunks(keys, characters / chunks.length)
}

/** Adds keys at the end of the last chunk; undefined if one belongs elsewhere. */
function appendKeys({ first, keys }: Chunk, added: readonly string[]): Chunk[] | undefined {
  const last = decodeLast(keys)
  return added[0] !== undefined && added[0] > last
    ? encodeChunks(added, chunkCharactersMax, { first, keys, last })
    : undefined
}

/** @param chunk gets the first keys, until it is full */
function encodeChunks(keys: readonly string[], charactersMax: number, chunk?: OpenChunk): Chunk[] {
  const chunks: Chunk[] = chunk ? [chunk] : []
  for (const key of keys) {
    if (!chunk || chunk.keys.length > charactersMax) chunks.push((chunk = openChunk(key)))
    else appendKey(chunk, key)
  }
  return chunks
}

/** A chunk that gets keys in ascending order. */
export type OpenChunk = Chunk & { last: string }

export const openChunk = (key: string): OpenChunk => ({ first: key, keys: key, last: key })

export const isFull = ({ keys }: OpenChunk) => keys.length > chunkCharactersMax

export function appendKey(chunk: OpenChunk, key: string): void {
  const shared = countShared(chunk.last, key)
  chunk.keys += ` ${lengthDigits[shared]}${key.slice(shared)}`
  chunk.last = key
}

function countShared(a: string, b: string): number {
  const max = Math.min(a.length, b.length, lengthRadix - 1)
  let length = 0
  while (length < max && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}

/** Characters of the keys of a chunk, one after the other. Reused, because most of the time would go into strings. */
let decoded = Buffer.alloc(16_384)

const space = 0x20
/** Difference between the code of a letter and its value as a digit: `a` is 10. */
const letterOffset = 0x57

function decodeKeys(text: string): string[] {
  const ends = decode(text)
  const keys = decoded.toString('latin1', 0, ends.at(-1))
  return ends.map((keyEnd, index) => keys.slice(ends[index - 1] ?? 0, keyEnd))
}

function decodeLast(text: string): string {
  const ends = decode(text)
  return decoded.toString('latin1', ends.at(-2) ?? 0, ends.at(-1))
}

/** Writes the characters of all keys to `decoded`. @returns where each ends */
function decode(text: string): number[] {
  const ends: number[] = []
  let previous = 0
  let end = 0
  for (let i = 0; i < text.length; i++) {
    const start = end
    if (ends.length > 0) {
      const code = text.charCodeAt(i++)
      const shared = code < letterOffset ? code - 0x30 : code - letterOffset
      if (end + shared + text.length > decoded.length) decoded = Buffer.concat([decoded], 2 * decoded.length)
      for (let from = previous; from < previous + shared; from++) decoded[end++] = decoded[from] ?? 0
    }
    for (; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code === space) break
      decoded[end++] = code
    }
    previous = start
    ends.push(end)
  }
  return ends
}
