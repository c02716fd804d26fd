import { useEffect } from 'react'
import { useKept } from './use-persistent-state.ts'
import type { List } from './use-list.ts'

/**
 * Selects a row as soon as there is one: that another screen asks for, or that was created a moment ago and is in the
 * next answer. From then on the selection is the reader's own.
 *
 * @returns asks for another one
 */
export function useWanted<Row>(name: string, list: List<Row>, first?: string) {
  const [wanted, setWanted] = useKept<string | null>(`wanted ${name}`, null, first)
  const isThere = wanted !== null && list.rows.some((row) => list.idOf(row) === wanted)
  useEffect(() => {
    if (!isThere || wanted === null) return
    list.select(wanted)
    setWanted(null)
  }, [isThere, wanted, list, setWanted])
  return setWanted
}
