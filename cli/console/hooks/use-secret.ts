import { useState } from 'react'
import { useConsole } from '../console-context.ts'
import { useNow } from './use-now.ts'

const shownMs = 30_000

/** Covers secrets: shown on demand, and covered again after 30 seconds or when the component is gone. */
export function useSecret() {
  const { theme } = useConsole()
  const nowMs = useNow()
  const [coverAtMs, setCoverAtMs] = useState(0)
  const isShown = nowMs < coverAtMs
  return {
    isShown,
    toggle: () => setCoverAtMs(isShown ? 0 : nowMs + shownMs),
    /** With as many signs whatever its length. */
    cover: (secret: string) => (isShown ? secret : theme.symbols.cover.repeat(12)),
  }
}
