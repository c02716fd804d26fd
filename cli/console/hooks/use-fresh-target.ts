import { useEffect, useState } from 'react'
import { useConsole, type Target } from '../console-context.ts'
import { useShell } from './use-shell.ts'

/**
 * Where another screen wants this one to begin, once: whoever has moved on since is not taken back there when the
 * component is made anew, as it is by a terminal that was too small for a moment.
 *
 * @param name of who asks; each is told once
 */
export function useFreshTarget(name: string, target: Target | null): Target | null {
  const { kept } = useConsole()
  const { visit } = useShell()
  const key = `target ${name}`
  const [fresh] = useState(() => (kept.get(key) === visit ? null : target))
  useEffect(() => {
    kept.set(key, visit)
  }, [kept, key, visit])
  return fresh
}
