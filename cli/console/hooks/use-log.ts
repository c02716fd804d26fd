import { useEffect, useEffectEvent, useLayoutEffect, useState } from 'react'
import { useConsole } from '../console-context.ts'
import { emptyTail, tailLog, type LogTail } from '../log-tail.ts'
import { usePersistentState } from './use-persistent-state.ts'
import { useShell } from './use-shell.ts'

export type LogSelection = {
  appId?: string | undefined
  type?: string | undefined
  phoneEnd?: string | undefined
}

/** The last of them is kept, so that a server that is lost takes nothing off the screen. */
type LastTail = { name: string; tail: LogTail }

/**
 * The log as it grows. While the console is paused the list stands still; what comes meanwhile is there afterwards.
 */
export function useLog({ appId, type, phoneEnd }: LogSelection): LogTail {
  const console = useConsole()
  const { isPaused } = useShell()
  const name = JSON.stringify([appId, type, phoneEnd])
  const [lastTail, saveTail] = usePersistentState<LastTail>('logs last', { name, tail: emptyTail })
  useEffect(() => {
    const controller = new AbortController()
    const previousRows = lastTail.name === name ? lastTail.tail.rows : []
    const draw = (tail: LogTail) => {
      console.answeredAt.set(console.now)
      saveTail({ name, tail })
    }
    saveTail({ name, tail: { ...emptyTail, rows: previousRows } })
    tailLog(console, { appId, type, phoneEnd }, controller.signal, draw, previousRows).catch(console.crash)
    return () => controller.abort()
  }, [console, name, appId, type, phoneEnd])
  const current = lastTail.name === name ? lastTail.tail : emptyTail
  const shown = useFrozenWhile(isPaused, current)
  return { ...shown, state: current.state }
}

/** The value, or while `isFrozen` the one that it had when that began. */
function useFrozenWhile<T>(isFrozen: boolean, value: T): T {
  const [frozen, setFrozen] = useState<{ value: T } | null>(null)
  const keep = useEffectEvent(() => setFrozen(isFrozen ? { value } : null))
  useLayoutEffect(() => keep(), [isFrozen])
  return isFrozen && frozen !== null ? frozen.value : value
}
