import type { Delivery } from '../domain/model/delivery.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { ReportResult } from '../domain/model/outcome-report.ts'
import type { Timers } from '../world/world.ts'
import type { Report } from './dispatcher.ts'
import type { ProviderPool } from './provider-pool.ts'

const reportTimeoutMs = 8_000

/** Reports outcomes to providers. A provider whose circuit is open hears them later. */
export function createReporter(needs: {
  pool: ProviderPool
  clock: Clock
  timers: Timers
  report: Report
}): Pick<Delivery, 'takesReports' | 'report'> & { close(): void } {
  const { pool, clock, timers, report } = needs
  const shutdown = new AbortController()
  const reportOf = (provider: string) => {
    const handle = pool.find(provider)
    return handle?.feedback ? handle : undefined
  }

  return {
    takesReports: (provider) => reportOf(provider)?.provider.reportOutcome !== undefined,

    async report(provider, outcome): Promise<ReportResult> {
      // The providers are gone because the server stops: another process, or the next start, reports.
      if (shutdown.signal.aborted) return { kind: 'retry', providerCode: 'stopped' }
      const handle = reportOf(provider)
      // The operator removed the provider, or switched its feedback off.
      if (!handle?.provider.reportOutcome) return { kind: 'done' }
      if (handle.breaker.openState(clock.now())) return { kind: 'retry', providerCode: 'circuit open' }
      const signal = AbortSignal.any([timers.timeoutSignal(reportTimeoutMs), shutdown.signal])
      const send = () => handle.provider.reportOutcome?.(outcome, signal) ?? done
      try {
        return await pool.use(handle, async () => send())
      } catch (error) {
        report('error', 'provider threw an unexpected error', { provider, error })
        return { kind: 'retry', providerCode: 'FAULT' }
      }
    },

    /** Ends the calls under way; their reports are tried again. */
    close: () => shutdown.abort(),
  }
}

const done: ReportResult = { kind: 'done' }
