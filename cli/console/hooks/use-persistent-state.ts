import { useState } from 'react'
import { useConsole } from '../console-context.ts'

/**
 * State that outlives a change of screens. One name is always of one type: begin it with the name of the screen.
 *
 * @param override begin with this whatever was kept, as another screen wants it
 */
export function usePersistentState<T>(name: string, initial: T, override?: T): [T, (value: T) => void] {
  const { savedState } = useConsole()
  // The name stands for the type, which no map can express.
  const [value, setValue] = useState(
    () => override ?? (savedState.has(name) ? (savedState.get(name) as T) : initial),
  )
  const save = (next: T) => {
    savedState.set(name, next)
    setValue(next)
  }
  return [value, save]
}
