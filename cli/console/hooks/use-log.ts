import { useEffect, useState } from 'react'
import { useConsole } from '../console-context.ts'
import { emptyTail, tailLog, type LogTail } from '../log-tail.ts'
import { useKept } from './use-persistent-state.ts'
import { useShell } from './use-shell.ts'

export type LogSelection = {
  appId?: string | undefined
  type?: string | undefined
  phoneEnd?: string | undefined
}

/** The last of them is kept, so that a server that is lost takes nothing off the screen. */
type Last = { name: string; tail: LogTail }

/**
 * The log as it grows. While the console is paused the list stands still; what comes meanwhile is there afterwards.
 */
export function useLog({ appId, type, phoneEnd }: LogSelection): LogTail {
  const console = useConsole()
  const { isPaused } = useShell()
  const name = JSON.stringify([appId, type, phoneEnd])
  const [last, keep] = useKept<Last>('logs last', { name, tail: emptyTail })
  const [paused, setPaused] = useState<LogTail | null>(null)
  useEffect(() => {
    const abort = new AbortController()
    const before = last.name === name ? last.tail.rows : []
    const draw = (tail: LogTail) => {
      console.answeredAt.set(console.now)
      keep({ name, tail })
    }
    keep({ name, tail: { ...emptyTail, rows: before } })
    tailLog(console, { appId, type, phoneEnd }, abort.signal, draw, before).catch(console.crash)
    return () => abort.abort()
  }, [console, name, appId, type, phoneEnd])
  const current = last.name === name ? last.tail : emptyTail
  if (isPaused && paused === null) setPaused(current)
  if (!isPaused && paused !== null) setPaused(null)
  return isPaused && paused !== null ? { ...paused, state: current.state } : current
}
