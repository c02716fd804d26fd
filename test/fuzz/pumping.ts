import { describeError, formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { runTrace, traces, type Figures, type Trace } from './pumping/traces.ts'

/** Traces of the short form: one of each goal. */
const shortTraces = [0, 2, 4, 6, 10, 15, 16]

const percent = (value: number, digits = 2) => `${(100 * value).toFixed(digits)} %`

export const pumping: FuzzPart = {
  name: 'pumping',
  title: 'the guard against SMS pumping, in addition to honest traffic',
  async run({ seed, isShort }, print) {
    const findings: string[] = []
    const chosen = isShort ? traces.filter((_, index) => shortTraces.includes(index)) : traces
    print('Defaults of 0.1.0 let 100 % of the pumped messages leave, and refused 0 % of the honest users.')
    print('messages that left / after the first hundred a day / honest users refused / alert')
    for (const trace of chosen) {
      const started = performance.now()
      try {
        const figures = await runTrace(trace, seed)
        const missed = findMissed(trace, figures)
        print(
          `${missed.length === 0 ? 'ok  ' : 'FAIL'} ${formatFigures(figures)}: ${trace.name} (${formatElapsed(started)})`,
        )
        for (const goal of missed) findings.push(`${trace.name}: ${goal}`)
      } catch (error) {
        findings.push(`${trace.name}: ${describeError(error)}`)
      }
    }
    return findings
  },
}

function formatFigures({ pumped, honest, alertMs, target }: Figures): string {
  const left = pumped ? `${pumped.left} of ${pumped.sent}, ${percent(pumped.left / pumped.sent)}` : '–'
  const after = pumped ? percent(pumped.leftAfterHundred / pumped.sent) : '–'
  const refused = `${honest.refused} of ${honest.users}, ${percent(honest.refused / honest.users)}`
  const alert = alertMs === undefined ? '' : ` / alert after ${(alertMs / 60_000).toFixed(1)} min`
  const country =
    target && target.conversion > 0 ? ` / ${target.code}, ${percent(target.conversion, 0)} verified` : ''
  return `${left} / ${after} / ${refused}${alert}${country}`
}

function findMissed({ goal }: Trace, { pumped, honest, target, alertMs }: Figures): string[] {
  const missed: string[] = []
  const check = (name: string, value: number, most: number | undefined) => {
    if (most !== undefined && !(value <= most))
      missed.push(`${name} ${percent(value)}, goal ${percent(most)}`)
  }
  if (pumped) {
    check('messages that left', pumped.left / pumped.sent, goal.left)
    check('messages after the first hundred a day', pumped.leftAfterHundred / pumped.sent, goal.afterHundred)
  }
  const inTarget = honest.refusedByCountry.get(target?.code ?? '') ?? 0
  check('honest users refused', honest.refused / honest.users, goal.refused)
  check(
    'honest users of other countries refused',
    (honest.refused - inTarget) / honest.users,
    goal.refusedElsewhere,
  )
  if (honest.refusedKnown > 0) missed.push(`${honest.refusedKnown} known phones refused`)
  if (goal.alertMinutes !== undefined && !((alertMs ?? Infinity) <= goal.alertMinutes * 60_000))
    missed.push(`no alert within ${goal.alertMinutes} minutes`)
  return missed
}
