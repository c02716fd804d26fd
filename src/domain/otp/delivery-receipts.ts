import {
  toDestination,
  candidateKey,
  isExcludedWith,
  type Delivery,
  type Receipt,
} from '../model/delivery.ts'
import { breakdownChange, chargeCounts } from '../log/counts.ts'
import { eventChange } from '../log/event-change.ts'
import { withCharge } from '../model/try-lines.ts'
import type { NewId } from '../model/ids.ts'
import { withDelivery, type LoadedMessage, type Message, type MessageKey } from '../model/message.ts'
import { noCost, type Price } from '../model/price.ts'
import { isLiving, type DeliveryStatus } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import type { Change, Decision } from '../store/operation.ts'
import type { Store } from '../store/store.ts'
import { nameClosableRows, readClosable, type ClosableRequest } from './lifecycle.ts'
import { minuteMs } from '../../shared/durations.ts'

/** How long a receipt without a message is kept: longer than any attempt takes. */
export const earlyReceiptLifetimeMs = minuteMs

type ReceiptNeeds = {
  clock: Clock
  newId: NewId
  delivery: Delivery
  /** Called when a message was reopened for another candidate. */
  onReopened(): void
  /** Applies a receipt to a relayed message. @returns false if none is meant */
  applyToRelayed(provider: string, receipt: Receipt): Promise<boolean>
}

export type DeliveryReceipts = ReturnType<typeof createDeliveryReceipts>

/** Applies the delivery receipts of providers. */
export function createDeliveryReceipts(
  needs: ReceiptNeeds & { store: Store<'earlyReceipts' | 'leases' | 'otpDeliveries'> },
) {
  const { store, clock, newId, delivery, onReopened } = needs

  /** Applies a receipt of a message. */
  async function apply(key: MessageKey, provider: string, receipt: Receipt): Promise<void> {
    const isReopened = await store.decide({
      preload: messageRows(key),
      decide(rows): Decision<boolean> {
        const now = rows.now(clock)
        const closable = readClosable(rows, key.requestId)
        const message = rows.messages(key.requestId).find((one) => one.messageNumber === key.messageNumber)
        if (!closable || !message) return { result: false, changes: [] }
        return applyReceipt({ newId, delivery }, { ...closable, message }, provider, receipt, now)
      },
    })
    if (isReopened) onReopened()
  }

  const find = (provider: string, receipt: Receipt) =>
    store.read.otpDeliveries.findForReceipt(provider, receipt)

  /**
   * Keeps a receipt whose message is not known, and looks for the message again: the attempt may have ended meanwhile. An
   * attempt that ends later finds the receipt, because it looks for it after its commit, at whichever node it runs.
   */
  async function keep(provider: string, receipt: Receipt): Promise<void> {
    await store.write(async (tx) => tx.earlyReceipts.put(provider, receipt, await tx.leases.now()))
    if (await applyToMessage(provider, receipt)) await drop(provider, receipt)
  }

  const drop = (provider: string, receipt: Receipt) =>
    store.write((tx) => tx.earlyReceipts.delete(provider, receipt))

  /** @returns false if its message is not known */
  async function applyToMessage(provider: string, receipt: Receipt): Promise<boolean> {
    const key = await find(provider, receipt)
    if (!key) return needs.applyToRelayed(provider, receipt)
    await apply(key, provider, receipt)
    return true
  }

  async function findEarly(requestId: string, provider: string, messageId: string | null) {
    const since = clock.now() - earlyReceiptLifetimeMs
    return store.read.earlyReceipts.find({ provider, messageId, requestId }, since)
  }

  return {
    /**
     * Applies receipts to message, request and log, each in an operation of its own. Late receipts count, repeated ones
     * do nothing, and no state ever goes backwards. Receipts of unknown messages are kept for a minute, as their send may
     * still be in progress, here or at another node.
     *
     * An undelivered message fails over to the next candidate, with the same code, while its request is
     * pending.
     */
    async receive(provider: string, receipts: readonly Receipt[]): Promise<void> {
      for (const receipt of receipts) {
        if (!(await applyToMessage(provider, receipt))) await keep(provider, receipt)
      }
    },

    /** Applies the receipt that arrived before the end of a message's attempt, if one did. */
    async applyEarly(key: MessageKey, provider: string, messageId: string | null): Promise<void> {
      const early = await findEarly(key.requestId, provider, messageId)
      if (!early) return
      await apply(key, provider, early)
      await drop(provider, early)
    },

    /** Applies the price that a provider names for a message outside of receipts. */
    async applyCharge(key: MessageKey, provider: string, charge: Price): Promise<void> {
      await store.decide({
        preload: messageRows(key),
        decide(rows): Decision<void> {
          const closable = readClosable(rows, key.requestId)
          const message = rows.messages(key.requestId).find((one) => one.messageNumber === key.messageNumber)
          if (!closable || message?.provider !== provider) return { result: undefined, changes: [] }
          const { changes } = applyCharge({ ...closable, message }, provider, { charge })
          return { result: undefined, changes }
        },
      })
    },

    /** Does the same for a relayed message. */
    async applyEarlyToRelayed(id: string, provider: string, messageId: string | null): Promise<void> {
      const early = await findEarly(id, provider, messageId)
      if (early && (await needs.applyToRelayed(provider, early))) await drop(provider, early)
    },
  }
}

/** Names the rows of a message and of what closes its request. */
const messageRows = ({ requestId }: MessageKey) => ({
  first: () => ({ request: requestId, messages: [requestId] }),
  next: (rows: Parameters<typeof nameClosableRows>[0]) => nameClosableRows(rows, requestId),
})

/** Decides what a receipt changes. @returns whether the message was reopened for another candidate */
function applyReceipt(
  { newId, delivery }: Pick<ReceiptNeeds, 'newId' | 'delivery'>,
  { subscribers, ...loaded }: ClosableRequest & { message: Message },
  provider: string,
  receipt: Receipt,
  now: number,
): Decision<boolean> {
  const { status, failure } = receipt
  if (loaded.message.provider !== provider) return { result: false, changes: [] }
  const { request, message, changes } = applyCharge(loaded, provider, receipt)
  const isNews = message.status === 'unknown' || (message.status === 'sent' && status !== 'sent')
  if (!isNews) return { result: false, changes }
  if (failure?.class === 'blocked_by_carrier')
    changes.push(breakdownChange({ ...request, provider }, { blocked: 1 }, now))
  const messageId = message.messageId ?? receipt.messageId
  // The response to the send was lost, so only now does otpd know which message to report.
  const isReportable = message.messageId === null && messageId !== null && delivery.takesReports(provider)
  const received: Message = {
    ...message,
    status,
    messageId,
    failure: failure?.class ?? null,
    ...(isReportable && { reportDueAt: request.expiresAt }),
    updatedAt: now,
  }
  const withRequest = (deliveryStatus: DeliveryStatus): Change[] => {
    const updated = withDelivery(request, message, { deliveryStatus }, now)
    return updated ? [{ kind: 'request', request: updated, isNew: false }] : []
  }
  const excluded =
    status === 'undelivered'
      ? nextExclusions(delivery, { request, message: received }, provider, receipt, now)
      : undefined
  if (excluded) {
    const reopened: Message = {
      ...received,
      status: 'pending',
      provider: null,
      messageId: null,
      excluded,
      nextAttemptAt: now,
      reportDueAt: null,
      ...noCost,
    }
    changes.push({ kind: 'message', message: reopened, isNew: false }, ...withRequest('queued'))
    return { result: true, changes }
  }
  changes.push({ kind: 'message', message: received, isNew: false }, ...withRequest(status))
  if (status === 'sent') return { result: false, changes }
  const updated = withDelivery(request, message, { deliveryStatus: status }, now) ?? request
  changes.push(
    breakdownChange(updated, { [status]: 1 }, now),
    eventChange(newId, `otp.${status}`, updated, subscribers, now, { detail: failure?.class ?? null }),
  )
  return { result: false, changes }
}

/**
 * Replaces the estimated price of a message by what its provider charges, in the timeline, and in the counts of the day on
 * which it was sent. A repeated charge changes nothing.
 */
function applyCharge(
  { request, message }: Pick<LoadedMessage, 'request' | 'message'>,
  provider: string,
  { charge }: Pick<Receipt, 'charge'>,
): Pick<LoadedMessage, 'request' | 'message'> & { changes: Change[] } {
  if (charge === undefined || charge === message.chargedPrice) return { request, message, changes: [] }
  const [onlyChannel, ...others] = message.channels
  const channel = onlyChannel !== undefined && others.length === 0 ? onlyChannel : request.channel
  const counts = chargeCounts(message, charge)
  const { messageId } = message
  const { history, sentAt } = withCharge(request, { provider, messageId }, charge) ?? {
    history: request.history,
    sentAt: message.updatedAt,
  }
  const charged = { ...request, history }
  const priced = { ...message, chargedPrice: charge }
  return {
    request: charged,
    message: priced,
    changes: [
      breakdownChange({ ...request, channel, provider }, counts, sentAt),
      { kind: 'request', request: charged, isNew: false },
      { kind: 'message', message: priced, isNew: false },
    ],
  }
}

/**
 * Returns the candidates that the next attempt of an undelivered message must exclude; undefined if no
 * candidate is left or the message is obsolete.
 */
function nextExclusions(
  delivery: Delivery,
  { request, message }: Pick<LoadedMessage, 'request' | 'message'>,
  provider: string,
  { failure }: Receipt,
  now: number,
): string[] | undefined {
  // A newer resend replaces this message.
  if (!isLiving(request, now) || request.resends !== message.messageNumber) return undefined
  const candidates = delivery.routesFor(toDestination(request)).candidatesFor(message.channels)
  const { channel } = request
  const excluded = new Set([...message.excluded, candidateKey({ channel, provider })])
  for (const candidate of candidates)
    if (failure && isExcludedWith(candidate, { channel }, failure)) excluded.add(candidateKey(candidate))
  return candidates.some((candidate) => !excluded.has(candidateKey(candidate))) ? [...excluded] : undefined
}
