import { useEffect, useState } from 'react'
import { useConsole } from '../console-context.ts'

/** The time in milliseconds since the epoch, every second anew: for clocks and for what ends soon. */
export function useNow(everyMs = 1000) {
  const { now } = useConsole()
  const [nowMs, setNowMs] = useState(now)
  useEffect(() => {
    const timer = setInterval(() => setNowMs(now()), everyMs)
    return () => clearInterval(timer)
  }, [now, everyMs])
  return nowMs
}
