import { useState } from 'react'
import { useConsole } from '../console-context.ts'

/**
 * Works like `useState`, but keeps the value while another screen is open.
 *
 * @param name must always hold the same type; begin it with the name of the screen
 * @param override initial value that replaces the kept one, for example from a link of another screen
 */
export function usePersistentState<T>(name: string, initial: T, override?: T): [T, (value: T) => void] {
  const { savedState } = useConsole()
  // Each name has one type, which a Map cannot express.
  const [value, setValue] = useState(
    () => override ?? (savedState.has(name) ? (savedState.get(name) as T) : initial),
  )
  const save = (next: T) => {
    savedState.set(name, next)
    setValue(next)
  }
  return [value, save]
}
