import { useEffect, useEffectEvent, useState } from 'react'
import { useConsole } from '../console-context.ts'
import type { LogSearch } from '../../client/recent-log.ts'
import { emptyTail, tailLog, type LogTail } from '../log-tail.ts'
import { usePersistentState } from './use-persistent-state.ts'
import { useShell } from './use-shell.ts'

/** Which entries are followed. */
type LogSelection = Omit<LogSearch, 'sinceMs'>

/** The newest tail of a selection. It outlives the connection, so that losing the server empties no screen. */
type NamedTail = { name: string; tail: LogTail }

/**
 * Follows the log. While the console is paused the rows stay as they were; the rows that arrive in the meantime appear
 * afterwards.
 */
export function useLog(selection: LogSelection): LogTail {
  const console = useConsole()
  const { isPaused } = useShell()
  const name = JSON.stringify(selection)
  const [newest, saveNewest] = usePersistentState<NamedTail>('logs last', { name, tail: emptyTail })
  const current = newest.name === name ? newest.tail : emptyTail
  const [shownWhilePaused, setShownWhilePaused] = useState(current)
  const show = useEffectEvent((next: NamedTail) => {
    saveNewest(next)
    if (!console.shell.get().isPaused) setShownWhilePaused(next.tail)
  })
  const reload = useEffectEvent(() => {
    const { rows } = current
    show({ name, tail: { ...emptyTail, rows } })
    return rows
  })
  const follow = useEffectEvent((draw: (tail: LogTail) => void, signal: AbortSignal) =>
    tailLog(console, selection, signal, draw, reload()),
  )
  useEffect(() => {
    const controller = new AbortController()
    const draw = (tail: LogTail) => {
      console.answeredAt.set(console.now)
      show({ name, tail })
    }
    follow(draw, controller.signal).catch(console.crash)
    return () => controller.abort()
  }, [console, name])
  return isPaused ? { ...shownWhilePaused, state: current.state } : current
}
