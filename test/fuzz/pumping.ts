import { describeError, formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { searchWorst } from './pumping/search.ts'
import { runTrace, shareOf, traces, worstDay, type Figures, type Trace } from './pumping/traces.ts'

/** Traces of the short form: one of each goal. */
const shortTraces = [0, 3, 4, 6, 9, 11, 15, 21]
const [shortDays, fullDays] = [3, 30]

const percent = (value: number, digits = 2) => `${(100 * value).toFixed(digits)} %`

export const pumping: FuzzPart = {
  name: 'pumping',
  title: 'the guard against SMS pumping, in addition to honest traffic',
  async run({ seed, isShort, search }, print) {
    const findings: string[] = []
    const only = process.env['OTPD_FUZZ_TRACES']?.split(' ').map(Number)
    const chosen = traces.filter(
      (_, index) => (only ?? (isShort ? shortTraces : undefined))?.includes(index) ?? true,
    )
    print(
      `${isShort ? shortDays : fullDays} days; left in the worst 24 hours / bound; honest users refused: of the target's worst`,
    )
    print('day, of the target, of others / without a code: the same / evidence that is left / first alert')
    for (const trace of chosen) {
      const started = performance.now()
      try {
        const figures = await runTrace(trace, seed, isShort ? shortDays : fullDays)
        const missed = findMissed(trace, figures)
        print(
          `${missed.length === 0 ? 'ok  ' : 'FAIL'} ${formatFigures(figures)}: ${trace.name} (${formatElapsed(started)})`,
        )
        for (const goal of missed) findings.push(`${trace.name}: ${goal}`)
      } catch (error) {
        findings.push(`${trace.name}: ${describeError(error)}`)
      }
    }
    if (only) return findings
    print(`The worst of ${search} attacks that a search tried for 3 days each:`)
    const { lines, aboveBounds } = await searchWorst(seed, search)
    for (const line of lines) print(line)
    return [...findings, ...aboveBounds]
  },
}

function formatFigures({ left, bound, sent, days, ofTarget, ofOthers, evidence, alertMs, target }: Figures) {
  const shares = (kind: 'refused' | 'lost') =>
    [worstDay(days, kind), shareOf(ofTarget, kind), shareOf(ofOthers, kind)]
      .map((share) => percent(share))
      .join(', ')
  return [
    sent > 0 ? `${left} of ${bound}` : '–',
    shares('refused'),
    shares('lost'),
    percent(evidence, 0),
    alertMs === undefined ? '–' : `${(alertMs / 60_000).toFixed(0)} min`,
    target?.code ?? '',
  ].join(' / ')
}

function findMissed({ goal, attack }: Trace, figures: Figures): string[] {
  const { left, bound, days, ofOthers, ofTarget, refusedKnown, evidence, alertMs } = figures
  const missed: string[] = []
  const check = (name: string, value: number, most: number | undefined) => {
    if (most !== undefined && !(value <= most))
      missed.push(`${name} ${value.toFixed(4)}, goal ${most.toFixed(4)}`)
  }
  if (attack) check('messages of a day', left, goal.isCold ? bound : (goal.ofAllowance ?? 1) * bound)
  check(
    'honest users of the worst day refused',
    attack ? worstDay(days, 'refused') : shareOf(ofTarget, 'refused'),
    goal.refused,
  )
  check('honest users of a later day refused', worstDay(days.slice(1), 'refused'), goal.refusedLater)
  check('honest users of other countries refused', shareOf(ofOthers, 'refused'), 0.001)
  check('known phones refused', refusedKnown, 0)
  check('evidence that was lost', 0.9 - evidence, 0)
  if (goal.alertMinutes !== undefined) check('alert', alertMs ?? Infinity, goal.alertMinutes * 60_000)
  return missed
}
