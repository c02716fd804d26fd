import { toDestination, candidateKey, type Delivery, type Receipt } from '../model/delivery.ts'
import { recordEvent, type EventTables } from '../log/events.ts'
import type { NewId } from '../model/ids.ts'
import type { LoadedMessage, MessageKey } from '../model/message.ts'
import { isExpired } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'
import { minuteMs } from '../../shared/durations.ts'

type ReceiptIds = Pick<Receipt, 'messageId' | 'requestId'>

/** Receipts that arrived before the provider's response to the send they belong to. */
export type EarlyReceipts = {
  hold(provider: string, receipt: Receipt): void
  find(provider: string, ids: ReceiptIds): EarlyReceipt | undefined
}

/** A held receipt. Call `forget` only after commit: the transaction that uses it may be retried. */
export type EarlyReceipt = { receipt: Receipt; forget(): void }

/** How long a receipt is held: longer than any attempt takes. */
const holdMs = minuteMs
const heldReceiptsMax = 1_000

/** Holds early receipts in memory: a crash can lose a delivery status, never a message. */
export function createEarlyReceipts(clock: Clock): EarlyReceipts {
  let heldReceipts: Array<{ provider: string; receipt: Receipt; until: number }> = []

  return {
    hold(provider, receipt) {
      const now = clock.now()
      heldReceipts = heldReceipts.filter(({ until }) => until > now).slice(-heldReceiptsMax + 1)
      heldReceipts.push({ provider, receipt, until: now + holdMs })
    },

    /** Finds the latest receipt, preferring final ones over `sent`. */
    find(provider, ids) {
      const matches = (entry: (typeof heldReceipts)[number]) =>
        entry.provider === provider &&
        (entry.receipt.messageId !== null && ids.messageId !== null
          ? entry.receipt.messageId === ids.messageId
          : entry.receipt.requestId === ids.requestId)
      const matching = heldReceipts.filter(matches)
      const last = matching.findLast(({ receipt }) => receipt.status !== 'sent') ?? matching.at(-1)
      if (!last) return undefined
      const forget = () => {
        heldReceipts = heldReceipts.filter((entry) => !matches(entry))
      }
      return { receipt: last.receipt, forget }
    },
  }
}

type ReceiptNeeds = {
  clock: Clock
  newId: NewId
  delivery: Delivery
  earlyReceipts: EarlyReceipts
  /** Called when a message was reopened for another candidate. */
  onReopened(): void
}

export type DeliveryReceipts = ReturnType<typeof createDeliveryReceipts>

/** Applies the delivery receipts of providers. */
export function createDeliveryReceipts(
  needs: ReceiptNeeds & { store: Store<EventTables | 'otpDeliveries' | 'otpRequests'> },
) {
  const { store, clock, earlyReceipts, onReopened } = needs
  return {
    /**
     * Applies receipts to message, request and log in one transaction. Late receipts count, repeated ones do
     * nothing, and no state ever goes backwards. Receipts of unknown messages are held, as their send may
     * still be in progress.
     *
     * An undelivered message fails over to the next candidate, with the same code, while its request is
     * pending.
     */
    async receive(provider: string, receipts: readonly Receipt[]): Promise<void> {
      const hasReopened = await store.write(async (tx) => {
        const now = clock.now()
        let anyReopened = false
        for (const receipt of receipts) {
          const key = await tx.otpDeliveries.findForReceipt(provider, receipt)
          if (key) anyReopened = (await applyReceipt(tx, needs, key, provider, receipt, now)) || anyReopened
          else earlyReceipts.hold(provider, receipt)
        }
        return anyReopened
      })
      if (hasReopened) onReopened()
    },
  }
}

/** Applies one receipt. @returns whether the message was reopened for another candidate */
export async function applyReceipt(
  tx: Pick<Stores, EventTables | 'otpDeliveries' | 'otpRequests'>,
  { newId, delivery }: Pick<ReceiptNeeds, 'newId' | 'delivery'>,
  key: MessageKey,
  provider: string,
  receipt: Receipt,
  now: number,
): Promise<boolean> {
  const { status } = receipt
  if (!(await tx.otpDeliveries.receive(key, provider, receipt, now))) return false
  const loaded = await tx.otpDeliveries.load(key)
  if (!loaded) return false
  const excluded =
    status === 'undelivered' ? nextExclusions(delivery, loaded, provider, receipt, now) : undefined
  if (excluded) {
    await tx.otpDeliveries.reopen(key, excluded, now)
    await tx.otpRequests.setDelivery(key, { deliveryStatus: 'queued' }, now)
    return true
  }
  const changed = await tx.otpRequests.setDelivery(key, { deliveryStatus: status }, now)
  if (status === 'sent') return false
  const request = changed ?? loaded.request
  await recordEvent(tx, newId, `otp.${status}`, request, now, receipt.failure?.class ?? null)
  return false
}

/**
 * Returns the candidates that the next attempt of an undelivered message must exclude; undefined if no
 * candidate is left or the message is obsolete.
 */
function nextExclusions(
  delivery: Delivery,
  { request, message }: LoadedMessage,
  provider: string,
  { failure }: Receipt,
  now: number,
): string[] | undefined {
  // A newer resend replaces this message.
  if (request.status !== 'pending' || isExpired(request, now) || request.resends !== message.message)
    return undefined
  const candidates = delivery.routesFor(toDestination(request)).candidatesFor(message.channels)
  const { channel } = request
  const isNumberFault = failure?.permanent === true && failure.at === 'number'
  const excluded = new Set([...message.excluded, candidateKey({ channel, provider })])
  if (isNumberFault)
    for (const candidate of candidates)
      if (candidate.channel === channel) excluded.add(candidateKey(candidate))
  return candidates.some((candidate) => !excluded.has(candidateKey(candidate))) ? [...excluded] : undefined
}
