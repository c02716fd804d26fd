import type { Clock } from '../model/clock.ts'
import { listTries } from '../model/try-lines.ts'
import type { OtpRequest } from '../model/request.ts'
import { isOfKnownSender } from '../model/request-history.ts'
import {
  formatCell,
  parseCell,
  type ChoiceQuestion,
  type RouteCell,
  type RouteChoice,
} from '../model/route-choice.ts'
import type { RouteStatisticsRow } from '../store/route-statistics.ts'
import type { Store } from '../store/store.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'
import { chooseProviders } from './choice.ts'
import { addOutcomes, emptyCounts } from './counts.ts'
import { createRouteStatistics, type SharedDelta } from './statistics.ts'

/** Rows that no outcome has changed for this long are deleted: their counts have decayed. */
const keptMs = 30 * dayMs
/** Longer than the clocks of nodes differ and a transaction takes, so that no row is missed. */
const overlapMs = minuteMs

/**
 * Learns which providers' codes are verified, and chooses by it. Each node counts in memory; `share` adds its counts to the
 * rows of all nodes, and reads what the others have counted.
 */
export function createRouteLearning(needs: {
  store: Store<'routeStatistics'>
  clock: Clock
  /** Whether other nodes count, too. */
  isShared: boolean
  /** Returns a number in [0, 1). */
  randomNumber(): number
}) {
  const { store, clock, isShared, randomNumber } = needs
  const statistics = createRouteStatistics()
  let readUntil = 0

  async function writeDeltas(): Promise<void> {
    const deltas = statistics.takeDeltas().toSorted((a, b) => (formatRowKey(a) < formatRowKey(b) ? -1 : 1))
    if (deltas.length === 0) return
    try {
      await store.write(async ({ routeStatistics }) => {
        const now = clock.now()
        const rows = await routeStatistics.lock(deltas.map(formatRowKey))
        const byCell = new Map(rows.map((row) => [row.cell, row]))
        await routeStatistics.save(
          deltas.map((delta) => addDelta(byCell.get(formatRowKey(delta)), delta, now)),
        )
      })
    } catch (error) {
      statistics.restore(deltas)
      throw error
    }
  }

  async function readRows(): Promise<void> {
    const now = clock.now()
    const rows = await store.read.routeStatistics.listUpdated(readUntil - overlapMs)
    readUntil = now
    statistics.merge(
      rows.flatMap((row) => {
        const isKnown = row.cell.endsWith(knownSuffix)
        const cell = parseCell(isKnown ? row.cell.slice(0, -knownSuffix.length) : row.cell)
        return cell ? { ...row, ...cell, isKnown } : []
      }),
      now,
    )
  }

  return {
    estimate: (cell: RouteCell) => statistics.estimate(cell, clock.now()),

    listCells: statistics.listCells,

    /** Orders the providers of a route by its strategy. */
    choose(question: ChoiceQuestion): RouteChoice {
      const now = clock.now()
      return chooseProviders(question, (cell) => statistics.estimate(cell, now), randomNumber)
    },

    /**
     * Counts a code that a provider accepted.
     *
     * @param request as it was before
     */
    recordSent(request: OtpRequest, cell: RouteCell, sentAt: number): void {
      statistics.recordSent(cell, sentAt)
      const last = listAccepted(request).at(-1)
      if (last) statistics.recordResent(last.cell, last.sentAt)
    },

    /** Counts the end of a request. Only verified and expired ones say whether their codes arrived. */
    recordEnd(request: OtpRequest): void {
      if (request.status !== 'verified' && request.status !== 'expired') return
      const now = clock.now()
      const isKnown = isOfKnownSender(request)
      const isVerified = request.status === 'verified'
      for (const { cell, ...outcome } of attributeOutcome(listAccepted(request), isVerified))
        statistics.recordOutcome(cell, { ...outcome, isKnown }, now)
    },

    /** Reads what was learned before, and forgets what is too old to say anything. */
    async start(): Promise<void> {
      await store.write(({ routeStatistics }) => routeStatistics.deleteOlder(clock.now() - keptMs))
      await readRows()
    },

    /** Exchanges counts with the other nodes. Counts that could not be written are kept for the next call. */
    async share(): Promise<void> {
      await writeDeltas()
      if (isShared) await readRows()
    },
  }
}

/** Lists the messages of a request that a provider accepted, oldest first. */
const listAccepted = (request: OtpRequest) =>
  listTries(request).flatMap(({ outcome, provider, channel, at: sentAt }) =>
    outcome === 'accepted' ? { cell: { provider, channel, country: request.country }, sentAt } : [],
  )

/** Follows the name of a cell in the key of the row for known senders. */
const knownSuffix = '/known'

const formatRowKey = (delta: SharedDelta) => `${formatCell(delta)}${delta.isKnown ? knownSuffix : ''}`

function addDelta(row: RouteStatisticsRow | undefined, delta: SharedDelta, now: number): RouteStatisticsRow {
  const counts = row ? { outcomes: row.outcomes, verified: row.verified, at: row.at } : emptyCounts(now)
  addOutcomes(counts, delta, now)
  return {
    cell: formatRowKey(delta),
    ...counts,
    verifiedSentAt: Math.max(row?.verifiedSentAt ?? 0, delta.verifiedSentAt),
    silentSince: Math.max(row?.silentSince ?? 0, delta.silentSince),
    updatedAt: now,
  }
}

/** A message of a request that a provider accepted. */
export type AcceptedMessage<C> = { cell: C; sentAt: number }

/**
 * Attributes the end of a request to its messages: the newest one carried the code that was verified, the ones before it did
 * not; if the request expired, none did.
 *
 * @param accepted in the order in which they were sent
 */
export const attributeOutcome = <C>(accepted: ReadonlyArray<AcceptedMessage<C>>, isVerified: boolean) =>
  accepted.map(({ cell, sentAt }, index) => ({
    cell,
    sentAt,
    isVerified: isVerified && index === accepted.length - 1,
  }))
