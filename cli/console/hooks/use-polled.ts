import { useEffect, useEffectEvent, useState } from 'react'
import { CliError } from '../../terminal/errors.ts'
import { useConsole } from '../console-context.ts'
import { useStore } from '../store.ts'
import { useShell } from './use-shell.ts'

/** The last answer is kept while the next one is awaited, and also when that fails. */
export type Polled<T> = { data: T | undefined; error: CliError | null }

type Options<T> = {
  /** From one answer to the next question; two seconds. */
  intervalMs?: number | ((data: T) => number)
  /** Asks nothing while false. */
  isActive?: boolean
}

const intervalMsDefault = 2000

/** More rows than one page of them are not asked for every two seconds. */
export const slowPollMs = (rows: readonly unknown[]) => (rows.length > 200 ? 20_000 : intervalMsDefault)

/**
 * What `load` answers, asked again and again while the component is there. `p` stops that, `r` asks at once, and so
 * does a server that is back.
 *
 * @param name of the question, with all that it depends on: `timeseries 7d`. Another name is another question.
 * @param load throws CliError where the server refuses; anything else is a bug and ends the console.
 */
export function usePolled<T>(
  name: string,
  load: () => Promise<T>,
  { intervalMs = intervalMsDefault, isActive = true }: Options<T> = {},
): Polled<T> {
  const { savedState, refreshCounter, answeredAt, problems, now, crash } = useConsole()
  const { isPaused } = useShell()
  const refreshCount = useStore(refreshCounter)
  const [answer, setAnswer] = useState<{ name: string; polled: Polled<T> } | null>(null)
  const loadData = useEffectEvent(load)
  const pauseAfter = useEffectEvent((data: T) =>
    typeof intervalMs === 'number' ? intervalMs : intervalMs(data),
  )

  useEffect(() => {
    // While paused, only what is not as new as the last change or `r` is asked.
    if (!isActive || (isPaused && cachedAnswer<T>(savedState, name)?.refreshCount === refreshCount)) return
    let isStopped = false
    let timer: ReturnType<typeof setTimeout> | undefined
    let lastJson = ''
    const poll = async () => {
      let pauseMs = intervalMsDefault
      try {
        const data = await loadData()
        if (isStopped) return
        answeredAt.set(now)
        problems.set((previous) => withoutKey(previous, name))
        savedState.set(`live ${name}`, { data, refreshCount } satisfies CachedAnswer<T>)
        pauseMs = pauseAfter(data)
        // Most answers are the same as before, and then nothing is drawn again.
        const json = JSON.stringify(data)
        if (json !== lastJson) setAnswer({ name, polled: { data, error: null } })
        lastJson = json
      } catch (error) {
        if (isStopped) return
        if (!(error instanceof CliError)) return crash(error)
        lastJson = ''
        problems.set((previous) => new Map(previous).set(name, error))
        setAnswer({ name, polled: { data: cachedAnswer<T>(savedState, name)?.data, error } })
      }
      if (!isPaused) timer = setTimeout(() => void poll(), pauseMs)
    }
    void poll()
    return () => {
      isStopped = true
      clearTimeout(timer)
      problems.set((previous) => withoutKey(previous, name))
    }
  }, [name, isActive, isPaused, refreshCount, savedState, answeredAt, problems, now, crash])

  return answer?.name === name
    ? answer.polled
    : { data: cachedAnswer<T>(savedState, name)?.data, error: null }
}

/** An answer, and which of the `refreshes` it is as new as. */
type CachedAnswer<T> = { data: T; refreshCount: number }

/** One name is always loaded by one function, so what is kept under it is what that answers. */
const cachedAnswer = <T>(savedState: Map<string, unknown>, name: string) =>
  savedState.get(`live ${name}`) as CachedAnswer<T> | undefined

function withoutKey<Value>(map: ReadonlyMap<string, Value>, name: string): ReadonlyMap<string, Value> {
  if (!map.has(name)) return map
  const copy = new Map(map)
  copy.delete(name)
  return copy
}
