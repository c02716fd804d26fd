import type { DeliveryTry, FailureClass } from './delivery.ts'
import type { MessageCost, Price } from './price.ts'
import type { ChoiceReason, ConsideredProvider, LearningStrategy, RouteChoice } from './route-choice.ts'
import type { Channel, OtpRequest } from './request.ts'

// Lines of a request's history that describe tries: providers that were asked to send a message.

/** Code of a try. It is stored. */
export const tryCode = 't'
const outcomeByCode = { a: 'accepted', r: 'refused', u: 'uncertain' } as const
const codeByOutcome = { accepted: 'a', refused: 'r', uncertain: 'u' } as const
/** Follows the outcome, if the attempt before did not end. */
const interruptedCode = 'i'
/** Fields before the provider's id of the message, the code included. All lines have them, and an id, which may be empty. */
const fieldsBeforeId = 6

const isOutcomeCode = (code: string): code is keyof typeof outcomeByCode => code in outcomeByCode

/** Writes a try as a line of the history of its request. */
export function formatTry({ createdAt }: Pick<OtpRequest, 'createdAt'>, one: DeliveryTry): string {
  const { at, channel, provider, outcome, error, latencyMs, messageId, reply, choice, cost } = one
  const texts = [provider, error, messageId, reply, choice && formatChoice(choice), cost && formatCost(cost)]
  const code = `${tryCode}${codeByOutcome[outcome]}${one.isInterrupted ? interruptedCode : ''}`
  const encoded = texts.map((text) => encodeURIComponent(text ?? ''))
  const fields = [code, at - createdAt, latencyMs, channel, ...encoded]
  while (fields.length > fieldsBeforeId + 1 && fields.at(-1) === '') fields.pop()
  return `${fields.join(',')}\n`
}

/** Reads a line that `formatTry` wrote; undefined for an unknown outcome. */
export function parseTry(text: string, createdAt: number): DeliveryTry | undefined {
  const [code = '', delta, latencyMs, channelName, ...texts] = text.split(',')
  const outcomeCode = code.charAt(1)
  if (!isOutcomeCode(outcomeCode)) return undefined
  const [provider = '', error, messageId, reply, choiceText, costText] = texts.map((field) =>
    field === '' ? undefined : decodeURIComponent(field),
  )
  // Channel and error were written by `formatTry`.
  const channel = channelName as Channel
  return {
    at: createdAt + Number(delta),
    channel,
    provider,
    messageId: messageId ?? null,
    outcome: outcomeByCode[outcomeCode],
    error: error === undefined ? null : (error as FailureClass),
    reply: reply ?? null,
    latencyMs: Number(latencyMs),
    ...(code.charAt(2) === interruptedCode && { isInterrupted: true }),
    ...(choiceText !== undefined && { choice: parseChoice(channel, choiceText) }),
    ...(costText !== undefined && { cost: parseCost(costText) }),
  }
}

/** Writes the decision of a strategy: `cost best cheap:5000:600:41 good:9000:850:500`, the conversion in thousandths. */
const formatChoice = ({ strategy, reason, considered }: RouteChoice) =>
  [strategy, reason, ...considered.map(formatConsidered)].join(' ')

const formatConsidered = ({ provider, price, conversion, samples }: ConsideredProvider) =>
  [provider, price ?? '', Math.round(conversion * 1000), Math.round(samples)].join(':')

function parseChoice(channel: Channel, text: string): RouteChoice {
  const [strategy, reason, ...providers] = text.split(' ')
  return {
    channel,
    // Both were written by `formatChoice`.
    strategy: strategy as LearningStrategy,
    reason: reason as ChoiceReason,
    considered: providers.map((fields) => {
      const [provider = '', price = '', conversion, samples] = fields.split(':')
      return {
        provider,
        price: parsePriceField(price),
        conversion: Number(conversion) / 1000,
        samples: Number(samples),
      }
    }),
  }
}

/** Writes the cost of a message: `7900:` is estimated, `7900:8100` was named by the provider, `:` is unknown. */
const formatCost = ({ estimatedPrice, chargedPrice }: MessageCost) =>
  `${estimatedPrice ?? ''}:${chargedPrice ?? ''}`

function parseCost(text: string): MessageCost {
  const [estimated = '', charged = ''] = text.split(':')
  return { estimatedPrice: parsePriceField(estimated), chargedPrice: parsePriceField(charged) }
}

const parsePriceField = (text: string): Price | null => (text === '' ? null : Number(text))

/** Lists the tries of a request in the order in which they began. */
export function listTries({ history, createdAt }: Pick<OtpRequest, 'history' | 'createdAt'>): DeliveryTry[] {
  const lines = history.split('\n').filter((text) => text.startsWith(tryCode))
  // A line is appended when its try has ended.
  return lines.flatMap((text) => parseTry(text, createdAt) ?? []).toSorted((a, b) => a.at - b.at)
}

/** A try in the history of its request. */
export type FoundTry = { line: number; tried: DeliveryTry }

/** Finds the last try at which a provider took, or may have taken, a message with this id; null: one without an id. */
export function findTry(
  { history, createdAt }: Pick<OtpRequest, 'history' | 'createdAt'>,
  message: { provider: string; messageId: string | null },
): FoundTry | undefined {
  const lines = history.split('\n')
  for (let line = lines.length - 1; line >= 0; line--) {
    const text = lines[line] ?? ''
    const tried = text.startsWith(tryCode) ? parseTry(text, createdAt) : undefined
    if (!tried || tried.outcome === 'refused') continue
    if (tried.provider === message.provider && tried.messageId === message.messageId) return { line, tried }
  }
  return undefined
}

/** Returns the history with another text for a try that `findTry` found. */
export const replaceTry = (
  { history, createdAt }: Pick<OtpRequest, 'history' | 'createdAt'>,
  { line, tried }: FoundTry,
): string => history.split('\n').with(line, formatTry({ createdAt }, tried).trimEnd()).join('\n')

/** Time at which the provider answered: the message counts on that day. */
export const endOfTry = ({ at, latencyMs }: Pick<DeliveryTry, 'at' | 'latencyMs'>): number => at + latencyMs

/** Removes the providers' ids of messages, which lead to a phone number, and what providers said. */
export const withoutMessageIds = (history: string): string =>
  history.replaceAll(
    new RegExp(`^(${tryCode}(?:[^,\n]*,){${fieldsBeforeId}})[^,\n]*(?:(,)[^,\n]*)?`, 'gm'),
    '$1$2',
  )
