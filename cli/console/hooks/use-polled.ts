import { useEffect, useEffectEvent, useState } from 'react'
import { CliError, isOutOfScope } from '../../terminal/errors.ts'
import { useConsole } from '../console-context.ts'
import { useStore } from '../store.ts'
import { useShell } from './use-shell.ts'
import { minuteMs, secondMs } from '../../../src/shared/durations.ts'

/** `data` is the last response; it is kept while the next one is loading and when that fails. */
export type Polled<T> = { data: T | undefined; error: CliError | null }

export type PollOptions<T> = {
  /** Pause between a response and the next request, in milliseconds; 2000 by default. */
  intervalMs?: number | ((data: T) => number)
  /** No requests are sent while false. */
  isActive?: boolean
}

const intervalMsDefault = 2000

/** Responses that are older than this are not from the last poll. */
const staleMs = 3000

/** Poll interval of a list: slower when it needs more than one page, as that is a request each. */
export const slowPollMs = (rows: readonly unknown[]) => (rows.length > 200 ? 20_000 : intervalMsDefault)

/**
 * Polls `load` while the component is mounted. `p` pauses polling; `r`, and a server that is reachable again, load at once.
 *
 * @param name cache key of the query, with everything it depends on: `timeseries 7d`
 * @param load throws CliError when the server refuses; any other error is a bug and ends the console
 */
export function usePolled<T>(
  name: string,
  load: () => Promise<T>,
  { intervalMs = intervalMsDefault, isActive = true }: PollOptions<T> = {},
): Polled<T> {
  const { savedState, refreshCounter, answeredAt, staleSince, problems, now, crash } = useConsole()
  const { isPaused } = useShell()
  const refreshCount = useStore(refreshCounter)
  const [answer, setAnswer] = useState<{ name: string; polled: Polled<T> } | null>(null)
  const loadData = useEffectEvent(load)
  const pauseAfter = useEffectEvent((data: T) =>
    typeof intervalMs === 'number' ? intervalMs : intervalMs(data),
  )

  useEffect(() => {
    // While paused, load only data that is older than the last refresh.
    if (!isActive || (isPaused && cachedAnswer<T>(savedState, name)?.refreshCount === refreshCount)) return
    const noteStale = () => {
      const shown = cachedAnswer<T>(savedState, name)
      if (shown && now() - shown.at > staleMs)
        staleSince.set((previous) => new Map(previous).set(name, shown.at))
    }
    noteStale()
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
        staleSince.set((previous) => withoutKey(previous, name))
        savedState.set(`polled ${name}`, { data, refreshCount, at: now() } satisfies CachedAnswer<T>)
        pauseMs = pauseAfter(data)
        // Most responses equal the one before; then nothing is rendered.
        const json = JSON.stringify(data)
        if (json !== lastJson) setAnswer({ name, polled: { data, error: null } })
        lastJson = json
      } catch (error) {
        if (isStopped) return
        if (!(error instanceof CliError)) return crash(error)
        lastJson = ''
        // A limit of calls: asking earlier would be refused again.
        pauseMs = Math.max(pauseMs, (error.retryAfterSeconds ?? 0) * secondMs)
        // The screens that need it show it; for others it is names and extras, which they do without.
        if (isOutOfScope(error)) pauseMs = minuteMs
        else problems.set((previous) => new Map(previous).set(name, error))
        noteStale()
        setAnswer({ name, polled: { data: cachedAnswer<T>(savedState, name)?.data, error } })
      }
      if (!isPaused) timer = setTimeout(() => void poll(), pauseMs)
    }
    void poll()
    return () => {
      isStopped = true
      clearTimeout(timer)
      problems.set((previous) => withoutKey(previous, name))
      staleSince.set((previous) => withoutKey(previous, name))
    }
  }, [name, isActive, isPaused, refreshCount, savedState, answeredAt, staleSince, problems, now, crash])

  return answer?.name === name
    ? answer.polled
    : { data: cachedAnswer<T>(savedState, name)?.data, error: null }
}

/** A response with its time, and the value of `refreshCounter` when it was requested. */
type CachedAnswer<T> = { data: T; refreshCount: number; at: number }

/** A name is always loaded by the same function, so its cached value has that function's type. */
const cachedAnswer = <T>(savedState: Map<string, unknown>, name: string) =>
  savedState.get(`polled ${name}`) as CachedAnswer<T> | undefined

function withoutKey<Value>(map: ReadonlyMap<string, Value>, name: string): ReadonlyMap<string, Value> {
  if (!map.has(name)) return map
  const copy = new Map(map)
  copy.delete(name)
  return copy
}
