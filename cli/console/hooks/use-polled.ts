import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { CliError } from '../../terminal/errors.ts'
import { useConsole } from '../console-context.ts'
import { useStore } from '../store.ts'
import { useShell } from './use-shell.ts'

/** The last answer is kept while the next one is awaited, and also when that fails. */
export type Live<T> = { data: T | undefined; error: CliError | null }

type Options<T> = {
  /** From one answer to the next question; two seconds. */
  everyMs?: number | ((data: T) => number)
  /** Asks nothing while false. */
  isActive?: boolean
}

const everyMsDefault = 2000

/** More rows than one page of them are not asked for every two seconds. */
export const calmlyMs = (rows: readonly unknown[]) => (rows.length > 200 ? 20_000 : everyMsDefault)

/**
 * What `load` answers, asked again and again while the component is there. `p` stops that, `r` asks at once, and so
 * does a server that is back.
 *
 * @param name of the question, with all that it depends on: `timeseries 7d`. Another name is another question.
 * @param load throws CliError where the server refuses; anything else is a bug and ends the console.
 */
export function useLive<T>(
  name: string,
  load: () => Promise<T>,
  { everyMs = everyMsDefault, isActive = true }: Options<T> = {},
): Live<T> {
  const { kept, refreshes, answeredAt, problems, now, crash } = useConsole()
  const { isPaused } = useShell()
  const asked = useStore(refreshes)
  const [answer, setAnswer] = useState<{ name: string; live: Live<T> } | null>(null)
  const latest = useRef({ load, everyMs })
  useLayoutEffect(() => {
    latest.current = { load, everyMs }
  })

  useEffect(() => {
    // While paused, only what is not as new as the last change or `r` is asked.
    if (!isActive || (isPaused && keptAnswer<T>(kept, name)?.asked === asked)) return
    let isOver = false
    let timer: ReturnType<typeof setTimeout> | undefined
    let last = ''
    const ask = async () => {
      let pauseMs = everyMsDefault
      try {
        const data = await latest.current.load()
        if (isOver) return
        answeredAt.set(now)
        problems.set((before) => without(before, name))
        kept.set(`live ${name}`, { data, asked } satisfies Kept<T>)
        const { everyMs: wanted } = latest.current
        pauseMs = typeof wanted === 'number' ? wanted : wanted(data)
        // Most answers are the same as before, and then nothing is drawn again.
        const text = JSON.stringify(data)
        if (text !== last) setAnswer({ name, live: { data, error: null } })
        last = text
      } catch (error) {
        if (isOver) return
        if (!(error instanceof CliError)) return crash(error)
        last = ''
        problems.set((before) => new Map(before).set(name, error))
        setAnswer({ name, live: { data: keptAnswer<T>(kept, name)?.data, error } })
      }
      if (!isPaused) timer = setTimeout(() => void ask(), pauseMs)
    }
    void ask()
    return () => {
      isOver = true
      clearTimeout(timer)
      problems.set((before) => without(before, name))
    }
  }, [name, isActive, isPaused, asked, kept, answeredAt, problems, now, crash])

  return answer?.name === name ? answer.live : { data: keptAnswer<T>(kept, name)?.data, error: null }
}

/** An answer, and which of the `refreshes` it is as new as. */
type Kept<T> = { data: T; asked: number }

/** One name is always loaded by one function, so what is kept under it is what that answers. */
const keptAnswer = <T>(kept: Map<string, unknown>, name: string) =>
  kept.get(`live ${name}`) as Kept<T> | undefined

function without<Value>(map: ReadonlyMap<string, Value>, name: string): ReadonlyMap<string, Value> {
  if (!map.has(name)) return map
  const rest = new Map(map)
  rest.delete(name)
  return rest
}
