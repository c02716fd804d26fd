import { CliError } from '../terminal/errors.ts'
import { followLog, isPassing } from '../client/follow-log.ts'
import { aborted } from '../terminal/interrupt.ts'
import { findRecent, isWanted, type LogSearch } from '../client/recent-log.ts'
import type { LogEntry } from '../client/resources.ts'
import { lasting } from '../terminal/text.ts'
import type { Console } from './console-context.ts'

export type LogRow =
  | { kind: 'entry'; id: string; entry: LogEntry }
  /** The connection was lost here, or is back. */
  | { kind: 'gap'; id: string; text: string }

export type LogTail = {
  /** Oldest first, at most `rowsMax`. */
  rows: readonly LogRow[]
  state: 'loading' | 'live' | 'lost' | 'refused'
  error: CliError | null
  /** When events came during the last minute before this was drawn, in milliseconds since the epoch. */
  arrivals: readonly number[]
}

export const emptyTail: LogTail = { rows: [], state: 'loading', error: null, arrivals: [] }

export const rowsMax = 2000
const backfill = 200
const againMs = 2000
/** However much arrives, it is drawn at most twenty times a second, so that keys are never kept waiting. */
const drawEveryMs = 50

/** As a place to go on from: the beginning of the log. */
const logStart = `evt_${'0'.repeat(26)}`

/**
 * The log as it grows, until the signal: the most recent entries, then each as it comes, with a line where the
 * connection was lost and where it is back. `draw` is told at most twenty times a second. `before` is shown until there
 * is an answer.
 *
 * Rejects with nothing but bugs.
 */
export async function tailLog(
  { api, context, connection, now }: Pick<Console, 'api' | 'context' | 'connection' | 'now'>,
  search: Omit<LogSearch, 'limit'>,
  signal: AbortSignal,
  draw: (tail: LogTail) => void,
  before: readonly LogRow[] = [],
) {
  const { io } = context
  const wanted: LogSearch = { ...search, limit: backfill }
  let rows: LogRow[] = [...before]
  let arrivals: number[] = []
  let state: LogTail['state'] = 'loading'
  let error: CliError | null = null
  let gaps = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  const flush = () => {
    timer = undefined
    arrivals = arrivals.filter((at) => at > now() - 60_000)
    rows = rows.slice(-rowsMax)
    // What was drawn stays as it is: a console that is paused goes on showing it.
    draw({ rows: [...rows], state, error, arrivals })
  }
  const changed = () => {
    if (!signal.aborted) timer ??= setTimeout(flush, drawEveryMs)
  }
  const add = (row: LogRow) => {
    rows.push(row)
    changed()
  }
  const gap = (text: string) => add({ kind: 'gap', id: `gap ${gaps++}`, text })
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true })

  let place: string | undefined
  while (!signal.aborted) {
    try {
      if (place === undefined) {
        const recent = await findRecent(api, wanted)
        rows = recent.entries.map((entry) => ({ kind: 'entry', id: entry.id, entry }))
        arrivals = recent.entries.map(({ at }) => Date.parse(at))
        place = recent.newestId ?? logStart
      }
      const query = { appId: search.appId, type: search.type, after: place }
      const onConnected = () => {
        state = 'live'
        error = null
        changed()
      }
      for await (const one of followLog(context, connection, { query, signal, onConnected })) {
        if (one.kind === 'entry') {
          place = one.entry.id
          arrivals.push(now())
          if (isWanted(one.entry, wanted)) add({ kind: 'entry', id: one.entry.id, entry: one.entry })
          else changed()
          continue
        }
        state = one.kind === 'lost' ? 'lost' : 'live'
        gap(
          one.kind === 'lost'
            ? `${one.why}, trying again`
            : `back after ${lasting(one.afterMs)}, nothing is missing`,
        )
      }
    } catch (fault) {
      if (!(fault instanceof CliError)) throw fault
      error = fault
      state = isPassing(fault) ? 'lost' : 'refused'
      changed()
      // Also where it was refused: whoever logs in again goes on where they were.
      await Promise.race([io.sleep(againMs), aborted(signal)])
    }
  }
}
