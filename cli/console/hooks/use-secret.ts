import { useState } from 'react'
import { useConsole } from '../console-context.ts'
import { useNow } from './use-now.ts'

const visibleMs = 30_000

/** Covers secrets: shown on demand, and covered again after 30 seconds or when the component is gone. */
export function useSecret() {
  const { theme } = useConsole()
  const nowMs = useNow()
  const [hideAtMs, setHideAtMs] = useState(0)
  const isShown = nowMs < hideAtMs
  return {
    isShown,
    toggle: () => setHideAtMs(isShown ? 0 : nowMs + visibleMs),
    /** With as many signs whatever its length. */
    maskUnlessShown: (secret: string) => (isShown ? secret : theme.symbols.mask.repeat(12)),
  }
}
