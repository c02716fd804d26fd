import { useEffect, useState } from 'react'
import { useConsole } from '../console-context.ts'

const shownMs = 30_000

/** Covers secrets: shown on demand, and covered again after 30 seconds or when the component is gone. */
export function useSecret() {
  const { theme } = useConsole()
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    if (!isShown) return
    const timer = setTimeout(() => setShown(false), shownMs)
    return () => clearTimeout(timer)
  }, [isShown])
  return {
    isShown,
    toggle: () => setShown((before) => !before),
    /** Covered with as many signs whatever its length; a `keep` of four leaves the last four readable. */
    cover: (secret: string, keep = 0) =>
      isShown ? secret : theme.symbols.cover.repeat(12) + (keep > 0 ? secret.slice(-keep) : ''),
  }
}
