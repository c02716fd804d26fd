import { createDueWorker, type After } from '../model/due-worker.ts'
import { deriveStoredCode } from '../model/code.ts'
import type { Clock } from '../model/clock.ts'
import { candidateKey, type Delivery } from '../model/delivery.ts'
import type { Keys } from '../model/keys.ts'
import type { LoadedMessage, MessageKey } from '../model/message.ts'
import type { Price } from '../model/price.ts'
import type { Outcome } from '../model/outcome-report.ts'
import { listTries } from '../model/try-lines.ts'
import { isPlainPhone } from '../model/pseudonyms.ts'
import { isVerifiable, type OtpRequest } from '../model/request.ts'
import type { Store } from '../store/store.ts'
import { dayMs, hourMs, minuteMs, secondMs } from '../../shared/durations.ts'

/** Longer than a report takes, so that no other node makes it at the same time. */
const leaseMs = minuteMs
const batchSize = 100
/** How late a report that is due by its time may be made; those of verified codes are made at once. */
const pollMsDefault = 5 * secondMs
/** Calls under way at once, of all providers: reports must not get in the way of messages. */
const concurrentMax = 10
/** Ended requests to report at once. More wait for the time that their rows name. */
const promptMax = 10_000

const reportLifetimeMs = dayMs
/** Pause before a price is asked for again; the outcome is reported again then, too. */
const pricePauseMs = 2 * minuteMs

type OutcomeReportNeeds = {
  store: Store<'leases' | 'messages'>
  clock: Clock
  keys: Keys
  delivery: Delivery
  after: After
  /** See `createDueWorker`; by default 5 s. */
  pollMs?: number | undefined
  /** Whether any provider takes reports. */
  takesReports(): boolean
  /** Applies the price that a provider names for one of its messages. */
  applyCharge(key: MessageKey, provider: string, charged: { messageId: string; charge: Price }): Promise<void>
  /** Called with reports that the provider refused, or did not take for a day. */
  onLost(facts: { requestId: string; provider: string; reason: string }): void
  /** Called with unexpected errors; the reports are tried again. */
  onError(error: unknown): void
}

/**
 * Tells providers how the requests of their messages ended: at least once, for up to a day. A message's row says when its
 * report is due, from the moment a provider accepts it, so ending a request writes nothing more. `reportSoon` makes it
 * due at once; if that is lost in a crash, the row is due when the code expires.
 */
export function createOutcomeReports(needs: OutcomeReportNeeds) {
  const { store, clock, keys, delivery, onLost, onError } = needs
  const prompt = new Set<string>()
  let isStarted = false
  const { after, pollMs = pollMsDefault } = needs
  const rounds = createDueWorker({
    runRound: reportRound,
    untilDueMs,
    after,
    changes: store.changes,
    pollMs,
    pauseMs: pollMs,
    onError,
  })

  /** Reports one batch. @returns whether there may be more */
  async function reportRound(): Promise<boolean> {
    if (!isStarted) return false
    const requestIds = [...prompt].slice(0, batchSize)
    if (requestIds.length === 0 && (await untilDueMs()) > 0) return false
    const { claimed, leaseUntil } = await store.write(async (tx) => {
      const now = await tx.leases.now()
      const query = { now, leaseUntil: now + leaseMs, limit: batchSize }
      const asked = requestIds.length > 0 ? await tx.messages.reports.claim({ ...query, requestIds }) : []
      const due = await tx.messages.reports.claim(query)
      return { claimed: [...asked, ...due], leaseUntil: query.leaseUntil }
    })
    for (const id of requestIds) prompt.delete(id)
    const dueTimes = await reportAll(claimed)
    if (dueTimes.length === 0) return prompt.size > 0
    await store.write(async (tx) => {
      for (const [key, dueAt] of dueTimes) await tx.messages.reports.endLease(key, leaseUntil, dueAt)
    })
    return claimed.length >= batchSize || prompt.size > 0
  }

  /** Reads how long it takes until a report is due; infinite if there is none, or no provider takes it. */
  async function untilDueMs(): Promise<number> {
    if (!needs.takesReports()) return Infinity
    return ((await store.read.messages.reports.nextDueAt()) ?? Infinity) - clock.now()
  }

  async function reportAll(claimed: readonly MessageKey[]): Promise<Array<[MessageKey, number | null]>> {
    const dueTimes: Array<[MessageKey, number | null]> = []
    const waiting = [...claimed]
    const work = async () => {
      for (let key = waiting.shift(); key; key = waiting.shift()) {
        const loaded = await store.read.messages.load(key)
        dueTimes.push([key, loaded ? await reportMessage(loaded) : null])
      }
    }
    await Promise.all(Array.from({ length: Math.min(concurrentMax, claimed.length) }, work))
    return dueTimes
  }

  /** @returns when the report is due again; null if it has ended */
  async function reportMessage(loaded: LoadedMessage): Promise<number | null> {
    const { request } = loaded
    const now = clock.now()
    if (!isPlainPhone(request.phone)) return null
    if (isVerifiable(request, now)) return request.expiresAt
    const isPriced = await findEarlierPrices(loaded)
    const dueAt = await reportOne(loaded)
    return dueAt ?? (isPriced ? null : priceDueAt(request, now))
  }

  /** Asks for the prices of a message at the providers from which it failed over. @returns false if one is pending */
  async function findEarlierPrices({ request, message }: LoadedMessage): Promise<boolean> {
    let isPriced = true
    for (const one of listTries(request)) {
      if (one.outcome === 'refused' || one.messageId === null) continue
      const { provider, messageId, channel, cost } = one
      const hasFailed = message.excluded.includes(candidateKey(one)) && messageId !== message.messageId
      if (!hasFailed || !cost || cost.chargedPrice !== null) continue
      const found = await delivery.findPrice(provider, { messageId, channel })
      if (found.kind === 'price_pending') isPriced = false
      if (found.kind === 'done' && found.charge !== undefined)
        await needs.applyCharge(message, provider, { messageId, charge: found.charge })
    }
    return isPriced
  }

  /** @returns when the report is due again; null if it has ended */
  async function reportOne({ request, message }: LoadedMessage): Promise<number | null> {
    const { provider, messageId } = message
    // No provider has the message.
    if (provider === null || messageId === null) return null
    const now = clock.now()
    // A network that has one verification for a phone at a time hears the outcome of its newest code.
    if (await store.read.messages.reports.hasLaterMessage(message)) return null
    const result = await delivery.report(provider, {
      requestId: request.id,
      messageId,
      to: request.phone,
      channel: request.channel,
      code: deriveStoredCode(keys, request),
      outcome: outcomeOf(request),
      endedAt: endOf(request),
      isCharged: message.chargedPrice !== null,
    })
    if (result.kind === 'done') {
      if (result.charge !== undefined)
        await needs.applyCharge(message, provider, { messageId, charge: result.charge })
      return null
    }
    const ageMs = now - request.expiresAt
    if (result.kind === 'price_pending') return priceDueAt(request, now)
    if (result.kind === 'rejected' || ageMs >= reportLifetimeMs) {
      onLost({ requestId: request.id, provider, reason: result.providerCode })
      return null
    }
    return now + Math.max(backoffMs(ageMs), (result.retryAfterSeconds ?? 0) * secondMs)
  }

  return {
    /** Starts reporting, until `stop`. */
    start(): void {
      isStarted = true
      rounds.start()
      rounds.wake()
    },

    /** Has a request reported that a call just ended. Cheap: nothing is read or written here. */
    reportSoon(requestId: string): void {
      if (prompt.size >= promptMax) return
      prompt.add(requestId)
      rounds.wake()
    },

    /** Makes the reports that are due; resolves when they have ended. */
    async reportDue(): Promise<void> {
      rounds.wake()
      await rounds.running()
    },

    /** Stops claiming reports; resolves once those under way have ended. */
    async stop(): Promise<void> {
      isStarted = false
      rounds.stop()
      await rounds.running()
    },
  }
}

/** The estimate stays if the provider does not name the price within a day. */
function priceDueAt({ expiresAt }: OtpRequest, now: number): number | null {
  const ageMs = now - expiresAt
  return ageMs >= reportLifetimeMs ? null : now + Math.max(pricePauseMs, backoffMs(ageMs))
}

/** Half of the age, so that a day has about a dozen tries: from 30 seconds to an hour. */
const backoffMs = (ageMs: number) => Math.min(hourMs, Math.max(30 * secondMs, ageMs / 2))

/** A request that is pending past its time has expired, whether that is stored or not. */
const outcomeOf = ({ status }: OtpRequest): Outcome => (status === 'pending' ? 'expired' : status)

const endOf = ({ status, verifiedAt, expiresAt, updatedAt }: OtpRequest) =>
  verifiedAt ?? (status === 'pending' || status === 'expired' ? expiresAt : updatedAt)
