import type { LogEntry } from './resources.ts'

type Choice = NonNullable<LogEntry['choice']>

const reasons: Record<Choice['strategy'], string> = {
  cost: 'least cost per verified code',
  conversion: 'most verified codes',
  balanced: 'best balance of cost and verified codes',
}

const otherReasons: Record<Exclude<Choice['reason'], 'best'>, string> = {
  explored: 'to keep its estimate current',
  untried: 'the better one already sent this code',
  others_silent: 'codes of the better one are not verified at the moment',
  others_open: 'the circuit of the better one is open',
}

/** Says why the first provider comes first: `least cost per verified code`. */
export const reasonText = (strategy: Choice['strategy'], reason: Choice['reason']) =>
  reason === 'best' ? reasons[strategy] : otherReasons[reason]

/** Formats a provider that a strategy weighed: `main 0.0079, 87% of 412`. */
const consideredText = ({ provider, price, conversion, samples }: Choice['considered'][number]) =>
  `${provider} ${price ?? 'no price'}, ${Math.round(conversion)}% of ${samples}`

/** Formats the decision of a strategy: `least cost per verified code: main 0.0079, 87% of 412 | spare 0.009, 91% of 88`. */
export const choiceText = ({ strategy, reason, considered }: Choice) =>
  `${reasonText(strategy, reason)}: ${considered.map(consideredText).join(' | ')}`
