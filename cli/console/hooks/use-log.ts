import { useEffect, useState } from 'react'
import { useConsole } from '../console-context.ts'
import { emptyTail, tailLog, type LogTail } from '../log-tail.ts'
import { useShell } from './use-shell.ts'

export type LogSelection = {
  appId?: string | undefined
  type?: string | undefined
  phoneEnd?: string | undefined
}

/**
 * The log as it grows. While the console is paused the list stands still; what comes meanwhile is there afterwards.
 */
export function useLog({ appId, type, phoneEnd }: LogSelection): LogTail {
  const console = useConsole()
  const { isPaused } = useShell()
  const name = JSON.stringify([appId, type, phoneEnd])
  const [tail, setTail] = useState({ name, tail: emptyTail })
  const [paused, setPaused] = useState<LogTail | null>(null)
  useEffect(() => {
    const abort = new AbortController()
    const draw = (next: LogTail) => {
      console.answeredAt.set(console.now)
      setTail({ name, tail: next })
    }
    tailLog(console, { appId, type, phoneEnd }, abort.signal, draw).catch(console.crash)
    return () => abort.abort()
  }, [console, name, appId, type, phoneEnd])
  const current = tail.name === name ? tail.tail : emptyTail
  if (isPaused && paused === null) setPaused(current)
  if (!isPaused && paused !== null) setPaused(null)
  return isPaused && paused !== null ? { ...paused, state: current.state } : current
}
