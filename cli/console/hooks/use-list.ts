import { useState } from 'react'
import { useConsole } from '../console-context.ts'
import { useKeys } from './use-keys.ts'

export type List<Row> = {
  /** Those that the filter lets through. */
  rows: readonly Row[]
  /** Null where there is no row. */
  selected: Row | null
  /** Of the selected row among `rows`; -1 where there is none. */
  index: number
  /** The first row that is drawn, and how many there is room for. */
  offset: number
  height: number
  filter: string
  /** There is a filter, or one is being typed; it takes one of the rows. */
  hasFilter: boolean
  /** The filter is being typed. */
  isFiltering: boolean
  setFilter(filter: string): void
  endFilter(): void
  isActive: boolean
  /** It stays at its end while rows are added there. */
  isFollowing: boolean
  idOf(row: Row): string
  select(id: string): void
}

type Place = { id: string | null; index: number; offset: number; filter: string; isFollowing: boolean }

type Options<Row> = {
  /** Of the list; its place and its filter are kept under it. */
  name: string
  rows: readonly Row[]
  /** How many rows are visible at once, the heading not counted. */
  height: number
  idOf(row: Row): string
  /** What the filter looks at; without it there is no filter. */
  textOf?(row: Row): string
  /** Takes keys; false for a pane that is not the one in use. */
  isActive?: boolean
  /** Rows are added at its end, and that is where it begins: a log. */
  isTail?: boolean
}

const nowhere: Place = { id: null, index: 0, offset: 0, filter: '', isFollowing: true }

/**
 * Selection, window and filter of a list. The selection stays on its row when rows come and go, and on its place when
 * the row itself is gone.
 */
export function useList<Row>({
  name,
  rows,
  height,
  idOf,
  textOf,
  isActive = true,
  isTail = false,
}: Options<Row>): List<Row> {
  const { kept } = useConsole()
  const [places] = useState(() => placesIn(kept))
  const [, draw] = useState(0)
  const [isFiltering, setFiltering] = useState(false)
  const place = places.get(name) ?? nowhere
  const put = (next: Partial<Place>) => {
    places.set(name, { ...(places.get(name) ?? nowhere), ...next })
    draw((before) => before + 1)
  }

  const hasFilter = isFiltering || place.filter !== ''
  const room = Math.max(1, hasFilter ? height - 1 : height)
  const words = place.filter.toLowerCase()
  const shown =
    words === '' || !textOf ? rows : rows.filter((row) => textOf(row).toLowerCase().includes(words))
  const isFollowing = isTail && place.isFollowing
  const found = isFollowing
    ? shown.length - 1
    : place.id === null
      ? -1
      : shown.findIndex((row) => idOf(row) === place.id)
  // A row that left a log has left at its beginning.
  const index = found === -1 ? Math.min(isTail ? 0 : place.index, shown.length - 1) : found
  const selected = shown[index] ?? null
  const offset = windowOffset(place.offset, index, room, shown.length)
  // The window follows the rows and the size of the screen, and none of that is an event.
  places.set(name, {
    ...place,
    id: selected === null ? place.id : idOf(selected),
    index: Math.max(0, index),
    offset,
  })

  const move = (to: number) => {
    const row = shown[Math.max(0, Math.min(to, shown.length - 1))]
    if (row !== undefined) put({ id: idOf(row), isFollowing: to >= shown.length - 1 })
  }
  const page = Math.max(1, room - 1)
  useKeys(
    'list',
    {
      down: () => move(index + 1),
      up: () => move(index - 1),
      pageDown: () => move(index + page),
      pageUp: () => move(index - page),
      top: () => move(0),
      bottom: () => move(shown.length - 1),
      filter: textOf && (() => setFiltering(true)),
      clear: place.filter === '' ? undefined : () => put({ filter: '' }),
    },
    { isActive },
  )
  return {
    rows: shown,
    selected,
    index,
    offset,
    height: room,
    filter: place.filter,
    hasFilter,
    isFiltering,
    isActive,
    isFollowing,
    idOf,
    select: (id) => put({ id, isFollowing: false }),
    setFilter: (filter: string) => put({ filter }),
    endFilter: () => setFiltering(false),
  }
}

/** As little as possible from where it was, so that the selected row is inside and no room is left empty. */
export function windowOffset(before: number, index: number, height: number, count: number) {
  const last = Math.max(0, count - height)
  const lowest = Math.max(0, index - height + 1)
  const highest = Math.max(0, index)
  return Math.min(last, Math.max(lowest, Math.min(before, highest)))
}

const placesKey = 'lists'

function placesIn(kept: Map<string, unknown>): Map<string, Place> {
  const found = kept.get(placesKey)
  // Nothing else is ever put under this key.
  if (found instanceof Map) return found
  const places = new Map<string, Place>()
  kept.set(placesKey, places)
  return places
}
