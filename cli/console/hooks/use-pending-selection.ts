import { useEffect } from 'react'
import { usePersistentState } from './use-persistent-state.ts'
import type { List } from './use-list.ts'

/**
 * Selects a row as soon as there is one: that another screen asks for, or that was created a moment ago and is in the
 * next answer. From then on the selection is the reader's own.
 *
 * @returns asks for another one
 */
export function usePendingSelection<Row>(name: string, list: List<Row>, initialId?: string) {
  const [pendingId, setPendingId] = usePersistentState<string | null>(`wanted ${name}`, null, initialId)
  const isListed = pendingId !== null && list.rows.some((row) => list.getRowId(row) === pendingId)
  useEffect(() => {
    if (!isListed || pendingId === null) return
    list.select(pendingId)
    setPendingId(null)
  }, [isListed, pendingId, list, setPendingId])
  return setPendingId
}
