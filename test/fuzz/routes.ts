import type { LearningStrategy } from '../../src/domain/model/route-choice.ts'
import { describeError, formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { replay, type ReplayFigures, type ReplayForm, type Totals } from './routes/replay.ts'

const short: ReplayForm = { sends: 400_000, days: 3, warmUpDays: 1 }
const full: ReplayForm = { sends: 10_000_000, days: 20, warmUpDays: 0 }

export const routes: FuzzPart = {
  name: 'routes',
  title: 'strategies of routes, over six simulated carriers',
  async run({ seed, isShort }, print) {
    const findings: string[] = []
    const strategies = (isShort ? ['cost'] : ['cost', 'balanced', 'conversion']) as LearningStrategy[]
    for (const strategy of strategies) {
      const started = performance.now()
      try {
        const form = isShort ? short : full
        const figures = replay(strategy, seed, form)
        const missed = findMissed(strategy, figures, isShort)
        const { sends, days } = form
        print(
          `${missed.length === 0 ? 'ok  ' : 'FAIL'} ${strategy}: ${sends} sends in ${days} days (${formatElapsed(started)})`,
        )
        for (const line of formatFigures(figures)) print(`     ${line}`)
        for (const goal of missed) findings.push(`${strategy}: ${goal}`)
      } catch (error) {
        findings.push(`${strategy}: ${describeError(error)}`)
      }
    }
    return findings
  },
}

const percent = (value: number) => `${(100 * value).toFixed(2)} %`
const perVerified = ({ cost, verified }: Totals) => cost / verified
const ratio = (one: Totals, other: Totals) => perVerified(one) / perVerified(other)

function formatFigures({ sends, strategy, oracle, cheapestOrder, bestOrder, ...rest }: ReplayFigures) {
  const { deaths, explored } = rest
  const describe = (name: string, totals: Totals) =>
    `${name.padEnd(34)} ${(perVerified(totals) / 1e6).toFixed(5)}   ${percent(totals.verified / sends)}`
  return [
    `${''.padEnd(34)} cost of a verified code, verified`,
    describe('strategy', strategy),
    describe('oracle that knows the true state', oracle),
    describe('fixed order with the least cost', cheapestOrder),
    describe('fixed order with the most verified', bestOrder),
    `cost: ${ratio(strategy, oracle).toFixed(3)} of the oracle's, ${ratio(strategy, cheapestOrder).toFixed(3)} of the best fixed order's`,
    `explored: ${percent(explored / sends)} of the messages`,
    `lost within an hour to a carrier that died where it served: ${deaths.lost} of ${deaths.codes} codes, ${percent(deaths.lost / Math.max(1, deaths.codes))}, in ${deaths.count} deaths`,
  ]
}

/** Names the goals that were missed. The short form has too few deaths, in small countries, for theirs. */
function findMissed(strategy: LearningStrategy, figures: ReplayFigures, isShort: boolean): string[] {
  const missed: string[] = []
  const check = (name: string, value: number, most: number) => {
    if (!(value <= most)) missed.push(`${name} ${value.toFixed(4)}, goal ${most}`)
  }
  const { sends, strategy: own, oracle, cheapestOrder, bestOrder, deaths, explored } = figures
  check('share explored', explored / sends, 0.1)
  check('least share explored', 0.02, explored / sends + 0.001)
  if (strategy === 'cost') check("share of the oracle's cost", ratio(own, oracle), 1.05)
  if (strategy !== 'conversion')
    check("share of the cheapest fixed order's cost", ratio(own, cheapestOrder), isShort ? 0.8 : 0.75)
  // The least cost has its price in conversion; a strategy that looks at conversion has to keep up with the best.
  const order = strategy === 'cost' ? cheapestOrder : bestOrder
  check('conversion below the best fixed order', (order.verified - own.verified) / sends, 0.005)
  if (!isShort) check('share of codes lost after a death', deaths.lost / deaths.codes, 0.02)
  return missed
}
