import { toDestination, type Receipt } from '../model/delivery.ts'
import { isId } from '../model/ids.ts'
import type { MessageKey } from '../model/message.ts'
import type { Price } from '../model/price.ts'
import { isVerifiable, type Channel, type OtpRequest } from '../model/request.ts'
import type { Decision, NamedRows, Rows } from '../store/operation.ts'
import type { Store } from '../store/store.ts'
import { applyReceipt, type AppliedReceipt, type JudgeFailover } from './apply-receipt.ts'
import { applyCharge, chargeEarlierTry } from './charges.ts'
import { judgeMessage, nameJudgeRows, readSender, type JudgedMessage } from './judge-message.ts'
import { messageRows, readClosable } from './lifecycle.ts'
import type { OtpNeeds } from './needs.ts'
import { namePhoneRows, readRequestPhone } from './phones.ts'
import { minuteMs } from '../../shared/durations.ts'

/** How long a receipt without a message is kept: longer than any attempt takes. */
export const earlyReceiptLifetimeMs = minuteMs

type ReceiptNeeds = Pick<OtpNeeds, 'clock' | 'delivery' | 'guard' | 'keys' | 'newId'> & {
  /** Called when a message was reopened for another candidate. */
  onReopened(): void
  /** Applies a receipt to a relayed message. @returns false if none is meant */
  applyToRelayed(provider: string, receipt: Receipt): Promise<boolean>
}

/** Applies the delivery receipts of providers. */
export function createDeliveryReceipts(
  needs: ReceiptNeeds & { store: Store<'earlyReceipts' | 'leases' | 'messages'> },
) {
  const { store, clock, newId, keys, delivery, guard, onReopened } = needs

  /** Applies a receipt of a message. */
  async function apply(key: MessageKey, provider: string, receipt: Receipt): Promise<void> {
    const { first, next } = messageRows(key)
    const mayFailOver = receipt.status === 'undelivered'
    const { isReopened, alert, request } = await store.decide({
      preload: {
        // The application is locked before the request, which tells it.
        lookUp: mayFailOver ? () => ({ phones: [], requests: [key.requestId] }) : undefined,
        first: (rows) => ({ ...(mayFailOver && nameFailoverRows(rows, key.requestId)), ...first() }),
        next,
      },
      decide(rows): Decision<AppliedReceipt & { request?: OtpRequest }> {
        const now = rows.now()
        const closable = readClosable(rows, key.requestId)
        const message = rows.messages(key.requestId).find((one) => one.messageNumber === key.messageNumber)
        if (!closable || !message) return { result: { isReopened: false }, changes: [] }
        const { request } = closable
        const judge: JudgeFailover = (...rest) =>
          judgeMessage(needs, rows, request.appId, describeFailover(rows, request, now, ...rest), now)
        const loaded = { ...closable, message }
        const { result, changes } = applyReceipt({ newId, delivery, judge }, loaded, provider, receipt, now)
        return { result: { ...result, request }, changes }
      },
    })
    if (alert && request) guard.onAlert(alert, request)
    if (isReopened) onReopened()
  }

  /** Names the rows by which the guard judges a message that may fail over. */
  function nameFailoverRows(rows: Rows, requestId: string): NamedRows | undefined {
    const request = rows.request(requestId)
    const now = rows.now()
    // The phone of a request that has ended may have been erased.
    if (!request || !isVerifiable(request, now)) return undefined
    return {
      application: { id: request.appId, developerId: request.developerId },
      ...namePhoneRows(rows, keys, request),
      ...nameJudgeRows(needs, rows, describeFailover(rows, request, now), now),
    }
  }

  /** Describes a message to the guard that another provider is to send: it costs, as a resend does. */
  function describeFailover(
    rows: Rows,
    request: OtpRequest,
    now: number,
    channels: readonly Channel[] = [],
    excluded: readonly string[] = [],
  ): JudgedMessage {
    const application = { id: request.appId, developerId: request.developerId }
    const { record } = readRequestPhone(rows, keys, request)
    const { listing, sender } = readSender(rows, application, record, request, now)
    const estimatePrice = () => delivery.estimatePrice(toDestination(request), channels, excluded)
    // The type of the number was judged with the channels of the first message.
    const message = { ...request, numberType: null, channels, listing, estimatePrice }
    return { message, sender }
  }

  const find = (provider: string, receipt: Receipt) => store.read.messages.findForReceipt(provider, receipt)

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
    if (!key) return (await needs.applyToRelayed(provider, receipt)) || applyToEarlierTry(provider, receipt)
    await apply(key, provider, receipt)
    return true
  }

  /**
   * Applies the price of a message that another provider has sent since.
   *
   * @returns false if the receipt names no price, or the timeline of its request has no such message
   */
  async function applyToEarlierTry(provider: string, receipt: Receipt): Promise<boolean> {
    const { requestId, charge } = receipt
    if (charge === undefined || requestId === null || !isId('otp', requestId)) return false
    return store.decide({
      preload: { first: () => ({ request: requestId }) },
      decide(rows): Decision<boolean> {
        const request = rows.request(requestId)
        const changes = request && chargeEarlierTry(request, provider, receipt)
        return { result: changes !== undefined, changes: changes ?? [] }
      },
    })
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

    /**
     * Deletes a batch of the receipts that were kept for at least `ageMs`. Those whose messages are known by now are applied
     * first: the process that sent them ended before it looked for them.
     *
     * @returns true if there may be more
     */
    async expireEarly(ageMs: number, batchSize: number): Promise<boolean> {
      const kept = await store.read.earlyReceipts.listOldest(clock.now() - ageMs, batchSize)
      if (kept.length === 0) return false
      for (const { provider, receipt } of kept) await applyToMessage(provider, receipt)
      await store.write(async ({ earlyReceipts }) => {
        for (const { provider, receipt } of kept) await earlyReceipts.delete(provider, receipt)
      })
      return true
    },

    /** Applies the price that a provider names for a message outside of receipts. */
    async applyCharge(
      key: MessageKey,
      provider: string,
      charged: { messageId: string; charge: Price },
    ): Promise<void> {
      await store.decide({
        preload: messageRows(key),
        decide(rows): Decision<void> {
          const closable = readClosable(rows, key.requestId)
          const message = rows.messages(key.requestId).find((one) => one.messageNumber === key.messageNumber)
          if (!closable || !message) return { result: undefined, changes: [] }
          const isLast = message.provider === provider && message.messageId === charged.messageId
          const changes = isLast
            ? applyCharge({ ...closable, message }, provider, charged).changes
            : chargeEarlierTry(closable.request, provider, charged)
          return { result: undefined, changes: changes ?? [] }
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
