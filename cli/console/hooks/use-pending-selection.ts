import { useEffect } from 'react'
import { usePersistentState } from './use-persistent-state.ts'
import type { List } from './use-list.ts'

/**
 * Selects a row as soon as it is listed: one that another screen links to, or that was just created and appears in the
 * next response. After that the user moves the selection.
 *
 * @returns a function that requests another row
 */
export function usePendingSelection<Row>(name: string, list: List<Row>, initialId?: string) {
  const [pendingId, setPendingId] = usePersistentState<string | null>(`pending ${name}`, null, initialId)
  const isListed = pendingId !== null && list.rows.some((row) => list.getRowId(row) === pendingId)
  useEffect(() => {
    if (!isListed || pendingId === null) return
    list.select(pendingId)
    setPendingId(null)
  }, [isListed, pendingId, list, setPendingId])
  return setPendingId
}
