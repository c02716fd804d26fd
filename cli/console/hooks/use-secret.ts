import { useState } from 'react'
import { useConsole } from '../console-context.ts'
import { useNow } from './use-now.ts'

const visibleMs = 30_000

/** Masks secrets. `toggle` reveals them for 30 seconds, or until the component is unmounted. */
export function useSecret() {
  const { theme } = useConsole()
  const nowMs = useNow()
  const [hideAtMs, setHideAtMs] = useState(0)
  const isShown = nowMs < hideAtMs
  return {
    isShown,
    toggle: () => setHideAtMs(isShown ? 0 : nowMs + visibleMs),
    /** The mask has a fixed length, so that it does not reveal the secret's. */
    maskUnlessShown: (secret: string) => (isShown ? secret : theme.symbols.mask.repeat(12)),
  }
}
