import { breakdownChange, chargeCounts } from '../log/changes.ts'
import type { Receipt } from '../model/delivery.ts'
import type { LoadedMessage, Message } from '../model/message.ts'
import type { MessageCost, Price } from '../model/price.ts'
import { isPlainPhone } from '../model/pseudonyms.ts'
import type { OtpRequest } from '../model/request.ts'
import { endOfTry, findTry, replaceTry, type FoundTry } from '../model/try-lines.ts'
import type { Change } from '../store/operation.ts'

/** Finds the try at which a provider took a message; undefined if the timeline does not have it. */
const findTryOf = (
  { history, createdAt }: OtpRequest,
  { messageId }: Message,
  provider: string,
): FoundTry | undefined =>
  // The id is not in the line if the provider's response was lost.
  findTry({ history, createdAt }, { provider, messageId }) ??
  findTry({ history, createdAt }, { provider, messageId: null })

/** A request with the channel and the provider that a message took: after a resend, those of the request are others. */
export function countedAs(
  request: OtpRequest,
  message: Message,
  provider: string,
  tried = findTryOf(request, message, provider)?.tried,
): OtpRequest {
  const [only, ...others] = message.channels
  const channel = tried?.channel ?? (only !== undefined && others.length === 0 ? only : request.channel)
  return { ...request, channel, provider }
}

/**
 * Replaces the estimated price of a message by what its provider charges, in the timeline, and in the counts of the day on
 * which it was sent. A repeated charge changes nothing.
 *
 * @param messageId the provider's id of the message, if the row lacks it
 */
export function applyCharge(
  { request, message }: Pick<LoadedMessage, 'request' | 'message'>,
  provider: string,
  { charge, messageId }: Pick<Receipt, 'messageId' | 'charge'>,
): Pick<LoadedMessage, 'request' | 'message'> & { changes: Change[] } {
  if (charge === undefined || charge === message.chargedPrice) return { request, message, changes: [] }
  const found = findTryOf(request, message, provider)
  // The timeline, because a later message of the request may have asked for this price, too. A try without a cost was made
  // when none were counted.
  const before = found ? found.tried.cost : message
  const counted = countedAs(request, message, provider, found?.tried)
  const sentAt = found ? endOfTry(found.tried) : message.updatedAt
  const charged = found ? withCharge(request, found, charge, messageId) : request
  const priced = { ...message, chargedPrice: charge }
  return {
    request: charged,
    message: priced,
    changes: [
      breakdownChange(counted, chargeCounts(before, charge), sentAt),
      { kind: 'request', request: charged, isNew: false },
      { kind: 'message', message: priced, isNew: false },
    ],
  }
}

/**
 * Does the same for a message that another provider has sent since, because it failed over or its attempt outlived its lease:
 * only the timeline still has it.
 *
 * @returns undefined if no price is named, or the timeline does not have the message either
 */
export function chargeEarlierTry(
  request: OtpRequest,
  provider: string,
  { messageId, charge }: Pick<Receipt, 'messageId' | 'charge'>,
): Change[] | undefined {
  const found =
    messageId !== null && charge !== undefined ? findTry(request, { provider, messageId }) : undefined
  if (!found || charge === undefined) return undefined
  const { channel, cost } = found.tried
  if (charge === cost?.chargedPrice) return []
  const charged = withCharge(request, found, charge, messageId)
  return [
    breakdownChange({ ...request, channel, provider }, chargeCounts(cost, charge), endOfTry(found.tried)),
    { kind: 'request', request: charged, isNew: false },
  ]
}

/**
 * Notes in the line of a try why its message did not arrive, and the id of the message if only the receipt names it. So the
 * timeline says why another provider was asked.
 */
export function withFailedOver(
  request: OtpRequest,
  message: Message,
  provider: string,
  { messageId, failure }: Pick<Receipt, 'messageId' | 'failure'>,
): OtpRequest {
  const found = findTryOf(request, message, provider)
  if (!found) return request
  const error = failure?.class ?? 'unknown'
  return withLine(request, { ...found, tried: { ...found.tried, error } }, messageId, found.tried.cost)
}

function withCharge(
  request: OtpRequest,
  found: FoundTry,
  chargedPrice: Price,
  messageId: string | null,
): OtpRequest {
  const cost = { estimatedPrice: null, ...found.tried.cost, chargedPrice }
  return withLine(request, found, messageId, cost)
}

/** Replaces the cost in the line of a try, and adds the id that its response did not tell, unless the phone was erased. */
function withLine(
  request: OtpRequest,
  { line, tried }: FoundTry,
  messageId: string | null,
  cost: MessageCost | undefined,
): OtpRequest {
  const id = isPlainPhone(request.phone) ? (tried.messageId ?? messageId) : null
  const replaced = { ...tried, messageId: id, ...(cost && { cost }) }
  return { ...request, history: replaceTry(request, { line, tried: replaced }) }
}
