import type { ConversionEstimate, RouteCell } from '../model/route-choice.ts'
import { createCellStatistics, type Cell, type CellDelta, type CellRow } from './cell-statistics.ts'

/** Outcomes of known senders that a country needs, with all its providers, so that estimates rest on them alone. */
const knownMin = 100

/** Tells the counts of known senders from those of all senders. */
type Counted = { isKnown: boolean }

export type SharedDelta = CellDelta & Counted

export type RouteStatistics = ReturnType<typeof createRouteStatistics>

/**
 * Keeps how many codes were verified: of all senders, and of known senders (`isOfKnownSender`), on which estimates rest where
 * there are enough. Attackers who never verify a code are not known, so that they cannot make a provider look as if its codes
 * did not arrive. Silence takes the codes of all senders: it must be noticed after few. All times are milliseconds since the
 * epoch.
 */
export function createRouteStatistics() {
  const all = createCellStatistics()
  const known = createCellStatistics()
  /** Cells of known senders, by those of all: names are looked up once for each provider of a choice. */
  const knownCells = new WeakMap<Cell, Cell>()
  const withKind = (isKnown: boolean) => (delta: CellDelta) => ({ ...delta, isKnown })

  return {
    estimate(key: RouteCell, now: number): ConversionEstimate {
      const cell = all.cellFor(key)
      const estimate = all.estimate(cell, now)
      let knownCell = knownCells.get(cell)
      if (!knownCell) knownCells.set(cell, (knownCell = known.cellFor(key)))
      if (known.countOutcomes(knownCell, now) < knownMin) return estimate
      const { conversion, samples, scope } = known.estimate(knownCell, now)
      return { conversion, samples, scope, isSilent: estimate.isSilent }
    },

    recordSent: all.recordSent,

    recordResent: all.recordResent,

    /** Counts a code whose outcome is known. */
    recordOutcome(
      key: RouteCell,
      outcome: Counted & { isVerified: boolean; sentAt: number },
      now: number,
    ): void {
      all.recordOutcome(key, outcome, now)
      if (outcome.isKnown) known.recordOutcome(key, outcome, now)
    },

    /** Takes what other nodes do not know yet. `restore` puts it back if it could not be written. */
    takeDeltas: (): SharedDelta[] => [
      ...all.takeDeltas().map(withKind(false)),
      ...known.takeDeltas().map(withKind(true)),
    ],

    restore(deltas: readonly SharedDelta[]): void {
      all.restore(deltas.filter(({ isKnown }) => !isKnown))
      known.restore(deltas.filter(({ isKnown }) => isKnown))
    },

    /** Replaces what is known of cells by their shared rows; outcomes of this node that these lack are added. */
    merge(rows: ReadonlyArray<CellRow & Counted>, now: number): void {
      all.merge(
        rows.filter(({ isKnown }) => !isKnown),
        now,
      )
      known.merge(
        rows.filter(({ isKnown }) => isKnown),
        now,
      )
    },

    recount(now: number): void {
      all.recount(now)
      known.recount(now)
    },

    listCells: all.listCells,
  }
}
