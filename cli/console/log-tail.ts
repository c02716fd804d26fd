import { CliError } from '../terminal/errors.ts'
import { followLog, isRetryable } from '../client/follow-log.ts'
import { whenAborted } from '../terminal/interrupt.ts'
import { findRecent, matchesSearch, type LogSearch } from '../client/recent-log.ts'
import type { LogEntry } from '../client/resources.ts'
import { formatDuration } from '../terminal/text.ts'
import type { Console } from './console-context.ts'

export type LogRow =
  | { kind: 'entry'; id: string; entry: LogEntry }
  /** The connection was lost here, or is back. */
  | { kind: 'gap'; id: string; text: string }

export type LogTail = {
  /** Oldest first, at most `rowsMax`. */
  rows: readonly LogRow[]
  state: 'loading' | 'live' | 'disconnected' | 'refused'
  error: CliError | null
  /** When events came during the last minute before this was drawn, in milliseconds since the epoch. */
  arrivals: readonly number[]
}

export const emptyTail: LogTail = { rows: [], state: 'loading', error: null, arrivals: [] }

export const rowsMax = 2000
const backfillLimit = 200
const retryMs = 2000
/** However much arrives, it is drawn at most twenty times a second, so that keys are never kept waiting. */
const drawIntervalMs = 50

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
  initialRows: readonly LogRow[] = [],
) {
  const { io } = context
  const recentSearch: LogSearch = { ...search, limit: backfillLimit }
  let rows: LogRow[] = [...initialRows]
  let arrivals: number[] = []
  let state: LogTail['state'] = 'loading'
  let error: CliError | null = null
  let gapCount = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  const flush = () => {
    timer = undefined
    arrivals = arrivals.filter((at) => at > now() - 60_000)
    rows = rows.slice(-rowsMax)
    // What was drawn stays as it is: a console that is paused goes on showing it.
    draw({ rows: [...rows], state, error, arrivals })
  }
  const scheduleDraw = () => {
    if (!signal.aborted) timer ??= setTimeout(flush, drawIntervalMs)
  }
  const addRow = (row: LogRow) => {
    rows.push(row)
    scheduleDraw()
  }
  const addGap = (text: string) => addRow({ kind: 'gap', id: `gap ${gapCount++}`, text })
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true })

  let lastEntryId: string | undefined
  while (!signal.aborted) {
    try {
      if (lastEntryId === undefined) {
        const recentLog = await findRecent(api, recentSearch)
        rows = recentLog.entries.map((entry) => ({ kind: 'entry', id: entry.id, entry }))
        arrivals = recentLog.entries.map(({ at }) => Date.parse(at))
        lastEntryId = recentLog.newestId ?? logStart
      }
      const query = { appId: search.appId, type: search.type, after: lastEntryId }
      const onConnected = () => {
        state = 'live'
        error = null
        scheduleDraw()
      }
      for await (const event of followLog(context, connection, { query, signal, onConnected })) {
        if (event.kind === 'entry') {
          lastEntryId = event.entry.id
          arrivals.push(now())
          if (matchesSearch(event.entry, recentSearch))
            addRow({ kind: 'entry', id: event.entry.id, entry: event.entry })
          else scheduleDraw()
          continue
        }
        state = event.kind === 'disconnected' ? 'disconnected' : 'live'
        addGap(
          event.kind === 'disconnected'
            ? `${event.reason}, trying again`
            : `back after ${formatDuration(event.afterMs)}, nothing is missing`,
        )
      }
    } catch (caught) {
      if (!(caught instanceof CliError)) throw caught
      error = caught
      state = isRetryable(caught) ? 'disconnected' : 'refused'
      scheduleDraw()
      // Also where it was refused: whoever logs in again goes on where they were.
      await Promise.race([io.sleep(retryMs), whenAborted(signal)])
    }
  }
}
