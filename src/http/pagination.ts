import type { Developer } from '../domain/model/developer.ts'
import { hmac } from '../shared/hmac.ts'
import type { Keys } from '../domain/model/keys.ts'
import { invalidCursor, pageLimitDefault, type Page, type PageRequest } from '../domain/model/pagination.ts'
import { seal, unseal } from '../domain/model/sealed.ts'

/** A call of a list: its query was validated against `pageQuery`. */
type ListCall = {
  developer: Pick<Developer, 'id'>
  path: string
  query: { limit?: string; cursor?: string }
}

export type Paginate = ReturnType<typeof createPaginate>

/**
 * Creates the pagination of list routes. Cursors are encrypted for the developer and the path, so that they neither
 * reveal the position, which may count the rows of all developers, nor work in another list.
 */
export function createPaginate({ keys }: { keys: Pick<Keys, 'cursor'> }) {
  const contextOf = ({ developer, path }: ListCall) => `${developer.id} ${path}`

  /**
   * Pads the position, because its length would tell its magnitude. The IV is derived (synthetic IV), so that an unchanged
   * page has the same response.
   */
  const sealCursor = (call: ListCall, position: string) => {
    const context = contextOf(call)
    const iv = hmac(keys.cursor).update(`${context}\n${position}`).digest()
    const fillIv = (bytes: Uint8Array) => bytes.set(iv.subarray(0, bytes.length))
    return seal(keys.cursor, context, position.padEnd(positionLength), fillIv)
  }

  /** @throws INVALID_ARGUMENT (CURSOR_INVALID) */
  function openCursor(call: ListCall, cursor: string): string {
    try {
      return unseal(keys.cursor, contextOf(call), cursor).trimEnd()
    } catch {
      throw invalidCursor()
    }
  }

  /**
   * Loads a page and builds the response body.
   *
   * @throws what `load` throws; INVALID_ARGUMENT (CURSOR_INVALID)
   */
  return async <T, U>(
    call: ListCall,
    load: (page: PageRequest) => Promise<Page<T>>,
    present: (item: T) => U,
  ) => {
    const { limit, cursor } = call.query
    const { items, nextCursor, ...page } = await load({
      limit: limit === undefined ? pageLimitDefault : Number(limit),
      cursor: cursor === undefined ? undefined : openCursor(call, cursor),
    })
    return {
      data: items.map(present),
      pagination: {
        limit: page.limit,
        nextCursor: nextCursor === null ? null : sealCursor(call, nextCursor),
      },
    }
  }
}

/** Longer than two ids and than a sequence number. */
const positionLength = 64

let lastSecond = Number.NaN
let lastSecondText = ''

/** Formats milliseconds since the epoch as RFC 3339 in UTC. Rows of a list are often of the same second. */
export function formatTime(ms: number): string {
  const second = Math.floor(ms / 1000)
  if (second !== lastSecond) {
    lastSecondText = new Date(1000 * second).toISOString().slice(0, -4)
    lastSecond = second
  }
  return `${lastSecondText}${String(ms - 1000 * second).padStart(3, '0')}Z`
}

/** As `formatTime`; null stays null. */
export const formatTimeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms))
