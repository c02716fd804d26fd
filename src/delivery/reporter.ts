import type { Delivery } from '../domain/model/delivery.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { OutcomeReport, ReportedResult, ReportResult } from '../domain/model/outcome-report.ts'
import type { Timers } from '../world/world.ts'
import type { Costs } from './costs.ts'
import type { Report } from './dispatcher.ts'
import type { ProviderHandle, ProviderPool } from './provider-pool.ts'

const reportTimeoutMs = 8_000

/**
 * Reports outcomes to providers, and then asks those for the price that name it only on demand. A provider whose circuit is open
 * hears them later.
 */
export function createReporter(needs: {
  pool: ProviderPool
  clock: Clock
  timers: Timers
  report: Report
  costs: Pick<Costs, 'currency' | 'toPrice'>
}): Pick<Delivery, 'takesReports' | 'report' | 'findPrice'> & { close(): void } {
  const { pool, clock, timers, report, costs } = needs
  const shutdown = new AbortController()
  const takesOutcomes = ({ feedback, provider }: ProviderHandle) =>
    feedback && provider.reportOutcome !== undefined
  const tellsPrices = ({ provider }: ProviderHandle) =>
    costs.currency() !== undefined && provider.findCharge !== undefined

  /** Makes a call to a provider. A call that throws is made again. */
  async function call<R>(handle: ProviderHandle, make: (signal: AbortSignal) => Promise<R>) {
    const signal = AbortSignal.any([timers.timeoutSignal(reportTimeoutMs), shutdown.signal])
    try {
      return await pool.use(handle, async () => make(signal))
    } catch (error) {
      report('error', 'provider threw an unexpected error', { provider: handle.name, error })
      return { kind: 'retry', providerCode: 'FAULT' } as const
    }
  }

  const reportOutcome = async (handle: ProviderHandle, outcome: OutcomeReport): Promise<ReportResult> =>
    takesOutcomes(handle)
      ? call(handle, (signal) => handle.provider.reportOutcome?.(outcome, signal) ?? Promise.resolve(done))
      : done

  async function findPrice(
    handle: ProviderHandle,
    message: Pick<OutcomeReport, 'messageId' | 'channel'>,
  ): Promise<ReportedResult> {
    const { provider, name } = handle
    if (!tellsPrices(handle)) return done
    const found = await call(
      handle,
      (signal) => provider.findCharge?.(message, signal) ?? Promise.resolve(none),
    )
    if (found.kind === 'none') return done
    if (found.kind !== 'charge') return { kind: 'price_pending' }
    const charge = costs.toPrice(name, found.charge)
    return charge === null ? done : { kind: 'done', charge }
  }

  return {
    takesReports(name) {
      const handle = pool.find(name)
      return handle !== undefined && (takesOutcomes(handle) || tellsPrices(handle))
    },

    async report(name, outcome): Promise<ReportedResult> {
      // The providers are gone because the server stops: another process, or the next start, reports.
      if (shutdown.signal.aborted) return { kind: 'retry', providerCode: 'stopped' }
      const handle = pool.find(name)
      // The operator removed the provider.
      if (!handle) return done
      if (handle.breaker.openState(clock.now())) return { kind: 'retry', providerCode: 'circuit open' }
      const reported = await reportOutcome(handle, outcome)
      if (reported.kind === 'retry') return reported
      return withOutcome(reported, outcome.isCharged ? done : await findPrice(handle, outcome))
    },

    async findPrice(name, message): Promise<ReportedResult> {
      if (shutdown.signal.aborted) return { kind: 'price_pending' }
      const handle = pool.find(name)
      return handle ? findPrice(handle, message) : done
    },

    /** Ends the calls under way; their reports are tried again. */
    close: () => shutdown.abort(),
  }
}

/** A rejected report is not repeated while the price is pending, so that it is logged once. */
const withOutcome = (reported: ReportResult, priced: ReportedResult): ReportedResult =>
  reported.kind === 'rejected' && priced.kind === 'done' && priced.charge === undefined ? reported : priced

const done: ReportResult & { kind: 'done' } = { kind: 'done' }
const none = { kind: 'none' } as const
