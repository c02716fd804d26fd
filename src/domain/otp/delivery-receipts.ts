import { toDestination, candidateKey, type Delivery, type Receipt } from '../model/delivery.ts'
import { recordEvent } from '../log/events.ts'
import type { NewId } from '../model/ids.ts'
import type { LoadedMessage, MessageKey } from '../model/message.ts'
import { isExpired } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'

type ReceiptIds = Pick<Receipt, 'messageId' | 'requestId'>

/** Receipts that came before the answer of the send that they belong to. */
export type EarlyReceipts = {
  hold(provider: string, receipt: Receipt): void
  find(provider: string, ids: ReceiptIds): EarlyReceipt | undefined
}

/** It is forgotten only once what it tells is committed: the transaction that finds it may have to be run again. */
export type EarlyReceipt = { receipt: Receipt; forget(): void }

/** Longer than any attempt lasts. */
const holdMs = 60_000
const heldReceiptsMax = 1_000

/** Kept in memory: what is lost by a crash is the word that a message arrived, never the message. */
export function createEarlyReceipts(clock: Clock): EarlyReceipts {
  let heldReceipts: Array<{ provider: string; receipt: Receipt; until: number }> = []

  return {
    hold(provider, receipt) {
      const now = clock.now()
      heldReceipts = heldReceipts.filter(({ until }) => until > now).slice(-heldReceiptsMax + 1)
      heldReceipts.push({ provider, receipt, until: now + holdMs })
    },

    /** The last word on it, if several came. */
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
  /** Told that a message waits for another way. */
  onReopened(): void
}

export type DeliveryReceipts = ReturnType<typeof createDeliveryReceipts>

/** What providers tell of messages that they took. */
export function createDeliveryReceipts(needs: ReceiptNeeds & { store: Store }) {
  const { store, clock, earlyReceipts, onReopened } = needs
  return {
    /**
     * Notes that a message was sent, has arrived or has not: message, request and event in one transaction. Late ones
     * count as well, repeats and those of unknown messages do nothing, and nothing ever goes backwards.
     *
     * A message that has not arrived goes to the next way, with the same code, while its request still waits.
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

/** @returns whether the message waits for another way now */
export async function applyReceipt(
  tx: Stores,
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

/** What is out of question for a message that has not arrived, or undefined where nothing else is left to be tried. */
function nextExclusions(
  delivery: Delivery,
  { request, message }: LoadedMessage,
  provider: string,
  { failure }: Receipt,
  now: number,
): string[] | undefined {
  // A resend is under way already, or has been: it is the one that counts.
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
