import {
  formatCell,
  type ConversionEstimate,
  type EstimateScope,
  type RouteCell,
} from '../model/route-choice.ts'
import { addOutcomes, countsAt, emptyCounts, type OutcomeCounts } from './counts.ts'
import { regionOf } from './region.ts'
import { createSilenceDetector, type SilenceDetector } from './silence.ts'

/** Outcomes that an estimate needs; missing ones are taken from the next larger group. */
const samplesMin = 50
/** Expected share of verified codes while there is not one outcome. */
const conversionDefault = 0.75

/** Statistics of a cell, as nodes share them. */
export type CellRow = RouteCell & OutcomeCounts & { verifiedSentAt: number; silentSince: number }

/** Outcomes of a cell that the shared row does not have yet. */
export type CellDelta = RouteCell & {
  outcomes: number
  verified: number
  verifiedSentAt: number
  silentSince: number
}

export type Cell = RouteCell & {
  /** Shared counts, as last read, plus those of this node since. */
  counts: OutcomeCounts
  /** Outcomes of this node that are not shared yet. */
  pending: { outcomes: number; verified: number }
  silence: SilenceDetector
  /** Larger groups to which it belongs, the smallest first. */
  groups: readonly Group[]
  /** All providers in its country. */
  destination: Group
}

type Group = { scope: EstimateScope; counts: OutcomeCounts }

/** Keeps how many codes were verified, by provider, channel and country. All times are milliseconds since the epoch. */
export function createCellStatistics() {
  const cells = new Map<string, Cell>()
  const groups = new Map<string, Group>()
  const changed = new Set<Cell>()

  function groupFor(scope: EstimateScope, key: string): Group {
    let group = groups.get(key)
    if (!group) groups.set(key, (group = { scope, counts: emptyCounts(0) }))
    return group
  }

  function cellFor(named: RouteCell): Cell {
    const key = formatCell(named)
    let cell = cells.get(key)
    if (!cell) {
      const { provider, channel, country } = named
      const region = regionOf(country)
      cell = {
        provider,
        channel,
        country,
        counts: emptyCounts(0),
        pending: { outcomes: 0, verified: 0 },
        silence: createSilenceDetector(),
        groups: [
          groupFor('region', `${provider}/${channel}/${region}`),
          groupFor('provider', `${provider}/${channel}`),
          groupFor('others', `/${channel}/${region}`),
          groupFor('others', `/${channel}`),
        ],
        destination: groupFor('country', `${channel}//${country ?? ''}`),
      }
      cells.set(key, cell)
    }
    return cell
  }

  /** Estimates a cell; each group fills up the outcomes that the smaller ones lack. */
  function estimate(cell: Cell, now: number): ConversionEstimate {
    const own = countsAt(cell.counts, now)
    let { outcomes, verified } = own
    let scope: EstimateScope = outcomes > 0 ? 'country' : 'none'
    for (const group of cell.groups) {
      const missing = samplesMin - outcomes
      if (missing <= 0) break
      const larger = countsAt(group.counts, now)
      // The group has the outcomes of the smaller ones, too.
      if (larger.outcomes <= outcomes) continue
      const taken = Math.min(missing, larger.outcomes - outcomes)
      outcomes += taken
      verified += (taken * larger.verified) / larger.outcomes
      scope = group.scope
    }
    const missing = Math.max(0, samplesMin - outcomes)
    // One outcome of each kind more (Laplace), so that no estimate is 0 or 1.
    const conversion =
      (verified + missing * conversionDefault + 2 * conversionDefault) / (outcomes + missing + 2)
    return { conversion, samples: own.outcomes, scope, isSilent: checkSilence(cell, conversion, now) }
  }

  function checkSilence(cell: Cell, conversion: number, now: number): boolean {
    const wasSilent = cell.silence.isSilent()
    const isSilent = cell.silence.check(conversion, now)
    if (!wasSilent && cell.silence.isSilent()) changed.add(cell)
    return isSilent
  }

  return {
    cellFor,

    estimate,

    /** Counts the outcomes of all providers on the channel to the country of a cell, up to 1000. */
    countOutcomes: ({ destination }: Cell, now: number): number => countsAt(destination.counts, now).outcomes,

    /** Counts a code that a provider accepted. */
    recordSent(key: RouteCell, sentAt: number): void {
      cellFor(key).silence.recordSent(sentAt)
    },

    /** Counts that another message was asked for after a code. */
    recordResent(key: RouteCell, sentAt: number): void {
      cellFor(key).silence.recordResent(sentAt)
    },

    /** Counts a code whose outcome is known. */
    recordOutcome(key: RouteCell, outcome: { isVerified: boolean; sentAt: number }, now: number): void {
      const cell = cellFor(key)
      const added = { outcomes: 1, verified: outcome.isVerified ? 1 : 0 }
      addOutcomes(cell.counts, added, now)
      for (const { counts } of cell.groups) addOutcomes(counts, added, now)
      addOutcomes(cell.destination.counts, added, now)
      cell.pending.outcomes++
      cell.pending.verified += added.verified
      if (outcome.isVerified) cell.silence.recordVerified(outcome.sentAt)
      changed.add(cell)
    },

    /** Takes what other nodes do not know yet. `restore` puts it back if it could not be written. */
    takeDeltas(): CellDelta[] {
      const deltas = [...changed].map(({ provider, channel, country, pending, silence }) => ({
        provider,
        channel,
        country,
        ...pending,
        ...silence.state(),
      }))
      for (const cell of changed) cell.pending = { outcomes: 0, verified: 0 }
      changed.clear()
      return deltas
    },

    restore(deltas: readonly CellDelta[]): void {
      for (const delta of deltas) {
        const cell = cellFor(delta)
        cell.pending.outcomes += delta.outcomes
        cell.pending.verified += delta.verified
        changed.add(cell)
      }
    },

    /** Replaces what is known of cells by their shared rows; outcomes of this node that these lack are added. */
    merge(rows: readonly CellRow[], now: number): void {
      for (const row of rows) {
        const cell = cellFor(row)
        cell.counts = { outcomes: row.outcomes, verified: row.verified, at: row.at }
        if (cell.pending.outcomes > 0) addOutcomes(cell.counts, cell.pending, now)
        cell.silence.merge(row)
      }
      if (rows.length > 0) recount(now)
    },

    recount,

    /** Lists the countries and channels that have outcomes. */
    listCells: (): RouteCell[] =>
      [...cells.values()].flatMap(({ provider, channel, country, counts }) =>
        counts.outcomes > 0 ? [{ provider, channel, country }] : [],
      ),
  }

  /** Sums up the groups again: they take in what other nodes have seen. */
  function recount(now: number): void {
    for (const { counts } of groups.values()) Object.assign(counts, emptyCounts(now))
    for (const cell of cells.values()) {
      const current = countsAt(cell.counts, now)
      for (const { counts } of cell.groups) addOutcomes(counts, current, now)
      addOutcomes(cell.destination.counts, current, now)
    }
  }
}
