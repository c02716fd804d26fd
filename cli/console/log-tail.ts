import { CliError, isRetryable } from '../terminal/errors.ts'
import { connectionText, followLog } from '../client/follow-log.ts'
import { whenAborted } from '../terminal/interrupt.ts'
import { findRecent, matchesSearch, type LogSearch } from '../client/recent-log.ts'
import type { LogEntry } from '../client/resources.ts'
import type { Console } from './console-context.ts'
import { minuteMs } from '../../src/shared/durations.ts'

export type LogRow =
  | { kind: 'entry'; id: string; entry: LogEntry }
  /** The connection was lost or restored here. */
  | { kind: 'gap'; id: string; text: string }

export type LogTail = {
  /** Oldest first, at most `rowsMax`. */
  rows: readonly LogRow[]
  state: 'loading' | 'live' | 'disconnected' | 'refused'
  error: CliError | null
  /** Arrival times of the events of the last minute, in milliseconds since the epoch. */
  arrivals: readonly number[]
}

export const emptyTail: LogTail = { rows: [], state: 'loading', error: null, arrivals: [] }

export const rowsMax = 2000
const retryMs = 2000
/** Limits drawing to 20 times a second, so that a busy log does not delay keys. */
const drawIntervalMs = 50

/**
 * Follows the log until the signal: loads the most recent entries, then streams new ones, and adds a row where the
 * connection was lost and where it was restored. Retries every 2 seconds after an error of the server.
 *
 * @param draw called with the whole tail, at most 20 times a second
 * @param initialRows shown until the first response
 * @throws only unexpected errors (bugs)
 */
export async function tailLog(
  { api, context, connection, now }: Pick<Console, 'api' | 'context' | 'connection' | 'now'>,
  search: LogSearch,
  signal: AbortSignal,
  draw: (tail: LogTail) => void,
  initialRows: readonly LogRow[] = [],
) {
  const { io } = context
  let rows: LogRow[] = [...initialRows]
  let arrivals: number[] = []
  let state: LogTail['state'] = 'loading'
  let error: CliError | null = null
  let gapCount = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  const flush = () => {
    timer = undefined
    arrivals = arrivals.filter((at) => at > now() - minuteMs)
    rows = rows.slice(-rowsMax)
    // A copy: a paused console keeps showing the rows that it was given.
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
        const recentLog = await findRecent(api, search)
        rows = recentLog.entries.map((entry) => ({ kind: 'entry', id: entry.id, entry }))
        arrivals = recentLog.entries.map(({ at }) => Date.parse(at))
        lastEntryId = recentLog.newestId
      }
      const { appId, environment, type } = search
      const query = { appId, environment, type, after: lastEntryId }
      const onConnected = () => {
        state = 'live'
        error = null
        scheduleDraw()
      }
      for await (const event of followLog(context, connection, { query, signal, onConnected })) {
        if (event.kind === 'entry') {
          lastEntryId = event.entry.id
          arrivals.push(now())
          if (matchesSearch(event.entry, search))
            addRow({ kind: 'entry', id: event.entry.id, entry: event.entry })
          else scheduleDraw()
          continue
        }
        state = event.kind === 'disconnected' ? 'disconnected' : 'live'
        addGap(connectionText(event))
      }
    } catch (caught) {
      if (!(caught instanceof CliError)) throw caught
      error = caught
      state = isRetryable(caught) ? 'disconnected' : 'refused'
      scheduleDraw()
      // Also after a refusal: once the user logs in again, the log continues from its last entry.
      await Promise.race([io.sleep(retryMs), whenAborted(signal)])
    }
  }
}
