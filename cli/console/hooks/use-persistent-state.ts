import { useState } from 'react'
import { useConsole } from '../console-context.ts'

/**
 * State that outlives a change of screens. One name is always of one type: begin it with the name of the screen.
 *
 * @param asked begin with this whatever was kept, as another screen wants it
 */
export function useKept<T>(name: string, initial: T, asked?: T): [T, (value: T) => void] {
  const { kept } = useConsole()
  // The name stands for the type, which no map can express.
  const [value, setValue] = useState(() => asked ?? (kept.has(name) ? (kept.get(name) as T) : initial))
  const keep = (next: T) => {
    kept.set(name, next)
    setValue(next)
  }
  return [value, keep]
}
