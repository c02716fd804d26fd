import { useEffectEvent, useLayoutEffect, useState } from 'react'
import { isDeepStrictEqual } from 'node:util'
import { initialListState, useConsole, type ListState } from '../console-context.ts'
import { useStore } from '../store.ts'
import { useKeys } from './use-keys.ts'

export type List<Row> = {
  /** The rows that match the filter. */
  rows: readonly Row[]
  /** Null if there are no rows. */
  selected: Row | null
  /** Index of the selected row in `rows`; -1 if there are none. */
  index: number
  /** Index of the first visible row. `height` is the number of visible rows. */
  offset: number
  height: number
  filter: string
  /** There is a filter, or one is being typed. It takes the line of one row. */
  hasFilter: boolean
  /** The filter is being typed. */
  isFiltering: boolean
  /** The rows are those that the server found for the filter. */
  isServerFiltered: boolean
  /** Enter searches at the server for the text that is being typed. */
  canSearchMore: boolean
  setFilter(filter: string): void
  /** Ends typing with this filter; an empty text shows all rows. */
  endFilter(filter: string): void
  isActive: boolean
  /** The selection stays on the last row while rows are added. */
  isFollowing: boolean
  getRowId(row: Row): string
  select(id: string): void
}

type Options<Row> = {
  /** Key under which selection, scroll position and filter are remembered. */
  name: string
  rows: readonly Row[]
  /** Number of visible rows, without the heading. */
  height: number
  getRowId(row: Row): string
  /** Returns the text that the filter searches. Without it the list has no filter. */
  getFilterText?(row: Row): string
  /** The filter is being typed from the start. */
  isFilteringAtStart?: boolean
  /** Called with the filter once it is typed, and with an empty text when it is cleared. */
  onFilter?(text: string): void
  /** The server has applied the filter to the rows, so they are all shown, unless it is being typed again. */
  isServerFiltered?: boolean
  /** Whether the list takes keys; false for a pane that is not focused. */
  isActive?: boolean
  /** The list is a log: it starts at its end, where rows are added. */
  isTail?: boolean
}

/**
 * Manages the selection, the visible window and the filter of a list. The selection stays on its row while rows are added
 * and removed; if the row itself is removed, on its position.
 */
export function useList<Row>({
  name,
  rows,
  height,
  getRowId,
  getFilterText,
  isFilteringAtStart = false,
  onFilter,
  isServerFiltered = false,
  isActive = true,
  isTail = false,
}: Options<Row>): List<Row> {
  const { listStates } = useConsole()
  const [isFiltering, setFiltering] = useState(isFilteringAtStart)
  const state = useStore(listStates, (states) => states.get(name) ?? initialListState)
  const update = (changes: Partial<ListState>) =>
    listStates.set((states) => withChanges(states, name, changes))

  const hasFilter = isFiltering || state.filter !== ''
  const visibleHeight = Math.max(1, hasFilter ? height - 1 : height)
  const isFilteredHere = !isServerFiltered || isFiltering
  const visibleRows = isFilteredHere ? filterRows(rows, state.filter, getFilterText) : rows
  const isFollowing = isTail && state.isFollowing
  const foundIndex = isFollowing
    ? visibleRows.length - 1
    : state.id === null
      ? -1
      : visibleRows.findIndex((row) => getRowId(row) === state.id)
  // A log drops its oldest rows, so a selected row that is gone was at the start.
  const index = foundIndex === -1 ? Math.min(isTail ? 0 : state.index, visibleRows.length - 1) : foundIndex
  const selected = visibleRows[index] ?? null
  const offset = windowOffset(state.offset, index, visibleHeight, visibleRows.length)
  // Rows and terminal size change without a key press, so the next render must start from what this one shows.
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
  const endFilter = (filter: string) => {
    if (filter !== state.filter) update({ filter })
    setFiltering(false)
    onFilter?.(filter)
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
      clear: state.filter === '' ? undefined : () => endFilter(''),
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
    isServerFiltered: isServerFiltered && !isFiltering,
    canSearchMore: isFiltering && state.filter !== '' && onFilter !== undefined,
    isActive,
    isFollowing,
    getRowId,
    select: (id) => update({ id, isFollowing: false }),
    setFilter: (filter: string) => update({ filter }),
    endFilter,
  }
}

function filterRows<Row>(
  rows: readonly Row[],
  filter: string,
  getText: ((row: Row) => string) | undefined,
): readonly Row[] {
  const text = filter.toLowerCase()
  return text === '' || !getText ? rows : rows.filter((row) => getText(row).toLowerCase().includes(text))
}

/** Returns the new offset of a window: moved as little as possible to show the selected row and leave no blank lines. */
export function windowOffset(previous: number, index: number, height: number, count: number) {
  const lastOffset = Math.max(0, count - height)
  const minOffset = Math.max(0, index - height + 1)
  const maxOffset = Math.max(0, index)
  return Math.min(lastOffset, Math.max(minOffset, Math.min(previous, maxOffset)))
}

/** Returns a copy with one list changed, or the same map if nothing changes. */
function withChanges(
  states: ReadonlyMap<string, ListState>,
  name: string,
  changes: Partial<ListState>,
): ReadonlyMap<string, ListState> {
  const previous = states.get(name) ?? initialListState
  const next = { ...previous, ...changes }
  return isDeepStrictEqual(next, previous) ? states : new Map(states).set(name, next)
}
