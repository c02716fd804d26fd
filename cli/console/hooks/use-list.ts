import { useEffectEvent, useLayoutEffect, useState } from 'react'
import { isDeepStrictEqual } from 'node:util'
import { useConsole, type ListState } from '../console-context.ts'
import { useStore } from '../store.ts'
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
  getRowId(row: Row): string
  select(id: string): void
}

type Options<Row> = {
  /** Of the list; its place and its filter are kept under it. */
  name: string
  rows: readonly Row[]
  /** How many rows are visible at once, the heading not counted. */
  height: number
  getRowId(row: Row): string
  /** What the filter looks at; without it there is no filter. */
  getFilterText?(row: Row): string
  /** Takes keys; false for a pane that is not the one in use. */
  isActive?: boolean
  /** Rows are added at its end, and that is where it begins: a log. */
  isTail?: boolean
}

const initialState: ListState = { id: null, index: 0, offset: 0, filter: '', isFollowing: true }

/**
 * Selection, window and filter of a list. The selection stays on its row when rows come and go, and on its place when
 * the row itself is gone.
 */
export function useList<Row>({
  name,
  rows,
  height,
  getRowId,
  getFilterText,
  isActive = true,
  isTail = false,
}: Options<Row>): List<Row> {
  const { listStates } = useConsole()
  const [isFiltering, setFiltering] = useState(false)
  const state = useStore(listStates, (states) => states.get(name) ?? initialState)
  const update = (changes: Partial<ListState>) =>
    listStates.set((states) => withChanges(states, name, changes))

  const hasFilter = isFiltering || state.filter !== ''
  const visibleHeight = Math.max(1, hasFilter ? height - 1 : height)
  const filterText = state.filter.toLowerCase()
  const visibleRows =
    filterText === '' || !getFilterText
      ? rows
      : rows.filter((row) => getFilterText(row).toLowerCase().includes(filterText))
  const isFollowing = isTail && state.isFollowing
  const foundIndex = isFollowing
    ? visibleRows.length - 1
    : state.id === null
      ? -1
      : visibleRows.findIndex((row) => getRowId(row) === state.id)
  // A row that left a log has left at its beginning.
  const index = foundIndex === -1 ? Math.min(isTail ? 0 : state.index, visibleRows.length - 1) : foundIndex
  const selected = visibleRows[index] ?? null
  const offset = windowOffset(state.offset, index, visibleHeight, visibleRows.length)
  // Rows arrive and the terminal is resized between two keys: the next render starts from what this one shows.
  const saveVisible = useEffectEvent(() =>
    update({ id: selected === null ? state.id : getRowId(selected), index: Math.max(0, index), offset }),
  )
  useLayoutEffect(() => saveVisible())

  const move = (targetIndex: number) => {
    const nextIndex = Math.max(0, Math.min(targetIndex, visibleRows.length - 1))
    const row = visibleRows[nextIndex]
    if (row === undefined) return
    update({
      id: getRowId(row),
      index: nextIndex,
      offset: windowOffset(offset, nextIndex, visibleHeight, visibleRows.length),
      isFollowing: targetIndex >= visibleRows.length - 1,
    })
  }
  const pageSize = Math.max(1, visibleHeight - 1)
  useKeys(
    'list',
    {
      down: () => move(index + 1),
      up: () => move(index - 1),
      pageDown: () => move(index + pageSize),
      pageUp: () => move(index - pageSize),
      top: () => move(0),
      bottom: () => move(visibleRows.length - 1),
      filter: getFilterText && (() => setFiltering(true)),
      clear: state.filter === '' ? undefined : () => update({ filter: '' }),
    },
    { isActive },
  )
  return {
    rows: visibleRows,
    selected,
    index,
    offset,
    height: visibleHeight,
    filter: state.filter,
    hasFilter,
    isFiltering,
    isActive,
    isFollowing,
    getRowId,
    select: (id) => update({ id, isFollowing: false }),
    setFilter: (filter: string) => update({ filter }),
    endFilter: () => setFiltering(false),
  }
}

/** As little as possible from where it was, so that the selected row is inside and no room is left empty. */
export function windowOffset(previous: number, index: number, height: number, count: number) {
  const lastOffset = Math.max(0, count - height)
  const minOffset = Math.max(0, index - height + 1)
  const maxOffset = Math.max(0, index)
  return Math.min(lastOffset, Math.max(minOffset, Math.min(previous, maxOffset)))
}

/** The states with one list's changed; the same map where nothing changes. */
function withChanges(
  states: ReadonlyMap<string, ListState>,
  name: string,
  changes: Partial<ListState>,
): ReadonlyMap<string, ListState> {
  const previous = states.get(name) ?? initialState
  const next = { ...previous, ...changes }
  return isDeepStrictEqual(next, previous) ? states : new Map(states).set(name, next)
}
