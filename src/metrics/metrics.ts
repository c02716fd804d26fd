import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { ServiceError } from '../domain/model/errors.ts'
import type { TokenErrorResponse, IdentityProvider } from '../domain/accounts/identity-provider.ts'
import type { Store } from '../domain/store/store.ts'
import type { SendWebhook } from '../domain/model/webhook-delivery.ts'
import { addInvariantMetrics } from './invariants.ts'
import { addProcessMetrics } from './process.ts'

export { serveMetrics } from './listener.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** Pending webhook deliveries (counted up to a limit), and when the oldest one was created. */
export type Backlog = { pending: number; oldestAt: number | null }

/** The last backup, if any; `at` in milliseconds since the epoch. */
export type Backups = { last(): { at: number; bytes: number } | null; areScheduled: boolean }

/** Names of a certificate, and its end in milliseconds since the epoch. */
type Certificate = { names: readonly string[]; notAfter: number }

type MetricsNeeds = { version: string; backlog(): Promise<Backlog>; backups?: Backups; now(): number }

/** Where gauges of delivery are read for each scrape. */
type Sources = {
  circuits(): readonly { name: string; isOpen: boolean }[]
  pendingMessages(): Promise<number>
}

/** Histogram buckets in seconds, as recommended by OpenTelemetry for HTTP. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

const methods = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS'])

/**
 * Creates the in-memory metrics that Prometheus scrapes. Label values come from closed lists and the provider names, never
 * from phone numbers, ids or URLs, so that the number of series (the cardinality) does not grow over time.
 *
 * @param needs.backlog called for each scrape; its cost must not grow with the number of deliveries
 * @param needs.backups called for each scrape; undefined where otpd makes no backups
 * @param needs.now milliseconds since the epoch
 */
export function createMetrics({ backups, ...needs }: MetricsNeeds) {
  const registry = new Registry()
  const registers = [registry]
  const counter = <T extends string>(name: string, help: string, ...labelNames: T[]) =>
    new Counter({ name, help, labelNames, registers })

  const requests = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'HTTP request duration in seconds, by method, route and status.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets,
    registers,
  })
  const sends = counter('otpd_otp_sends_total', 'Sends and resends, by outcome.', 'outcome')
  const verifications = counter('otpd_otp_verifications_total', 'Code verifications, by outcome.', 'outcome')
  const rateLimited = counter(
    'otpd_rate_limited_total',
    'Requests rejected by a rate limit, by policy.',
    'policy',
  )
  const authFailures = counter(
    'otpd_auth_failures_total',
    'Rejected logins, ID tokens and application credentials, by kind and reason.',
    'kind',
    'reason',
  )
  const deliveries = new Histogram({
    name: 'otpd_delivery_duration_seconds',
    help: 'Provider send duration in seconds, by provider and outcome.',
    labelNames: ['provider', 'outcome'],
    buckets,
    registers,
  })
  const webhooks = counter('otpd_webhook_attempts_total', 'Webhook delivery attempts, by outcome.', 'outcome')
  const guardAlerts = counter(
    'otpd_guard_alerts_total',
    'Alerts that a country has more unverified messages than usual, by country.',
    'country',
  )
  const challenges = counter(
    'otpd_challenge_checks_total',
    'Tokens of challenges that were checked, by outcome: passed, failed, or unavailable if the service did not say.',
    'outcome',
  )
  let readCertificate = (): Certificate | undefined => undefined
  const expiry = new Gauge({
    name: 'otpd_tls_certificate_expiry_seconds',
    help: 'Seconds until the certificate of HTTPS ends, by name.',
    labelNames: ['domain'],
    registers,
  })
  const renewals = counter(
    'otpd_tls_renewals_total',
    'Certificates of HTTPS that were renewed or exchanged, and failures of that, by outcome.',
    'outcome',
  )
  const pending = new Gauge({
    name: 'otpd_webhook_pending',
    help: 'Pending webhook deliveries, counted up to 100,000.',
    registers,
  })
  const oldest = new Gauge({
    name: 'otpd_webhook_oldest_pending_seconds',
    help: 'Age of the oldest pending webhook delivery in seconds.',
    registers,
  })
  let sources: Sources = { circuits: () => [], pendingMessages: () => Promise.resolve(0) }
  const circuits = new Gauge({
    name: 'otpd_provider_circuit_open',
    help: 'Whether the circuit of a provider is open at this node (1), by provider.',
    labelNames: ['provider'],
    registers,
  })
  const opened = counter(
    'otpd_provider_circuit_opened_total',
    'Times that the circuit of a provider opened because it failed, by provider.',
    'provider',
  )
  const queues = new Gauge({
    name: 'otpd_queue_length',
    help: 'Work that waits or is under way at this node, by queue: writes, logins, webhooks; and messages of all nodes that wait for a provider, up to 100,000.',
    labelNames: ['queue'],
    registers,
  })
  /** Counts in a queue for as long as the work takes. */
  const inQueue = <T>(queue: string, work: Promise<T>): Promise<T> => {
    queues.inc({ queue })
    return work.finally(() => queues.dec({ queue }))
  }
  for (const queue of ['writes', 'logins', 'webhooks', 'messages']) queues.set({ queue }, 0)
  const backupGauges = backups && {
    at: new Gauge({
      name: 'otpd_backup_last_success_timestamp_seconds',
      help: 'Time of the last backup in seconds since the epoch; 0 before the first of a schedule, otherwise NaN.',
      registers,
    }),
    bytes: new Gauge({
      name: 'otpd_backup_last_bytes',
      help: 'Size of the last backup in bytes.',
      registers,
    }),
    failures: counter('otpd_backup_failures_total', 'Backups of the schedule that failed.'),
  }
  new Gauge({
    name: 'otpd_build_info',
    help: 'Always 1; the label has the version.',
    labelNames: ['version'],
    registers,
  }).set({ version: needs.version }, 1)
  addProcessMetrics(registry)

  const otpCounterFor = (route: string) => {
    const path = documentedPath(route)
    if (/\/otp\/(verify|proofs)$/.test(path)) return { counter: verifications, successOutcome: 'verified' }
    return path === '/v1/otp/send' || path === '/v1/otp/resend'
      ? { counter: sends, successOutcome: 'sent' }
      : undefined
  }

  return {
    /** Counts a completed HTTP request by its route pattern; null is a path without a route. */
    observeRequest(request: {
      method: string
      route: string | null
      status: number
      durationMs: number
    }): void {
      const { method, status, durationMs } = request
      const route = documentedPath(request.route ?? 'none')
      requests.observe(
        {
          http_request_method: methods.has(method) ? method : '_OTHER',
          http_route: route,
          http_response_status_code: status,
        },
        durationMs / 1000,
      )
      if (status < 300) {
        const otp = otpCounterFor(route)
        otp?.counter.inc({ outcome: otp.successOutcome })
      }
    },

    /** Counts a rejected request. `path` only selects the counter and never becomes a label. */
    recordRefusal({ code, reason }: Pick<ServiceError, 'code' | 'reason'>, path: string): void {
      const label = (reason ?? code).toLowerCase()
      otpCounterFor(path)?.counter.inc({ outcome: label })
      if (code === 'RATE_LIMITED') rateLimited.inc({ policy: label })
      const isToken = reason?.startsWith('TOKEN_') === true || reason === 'ACCOUNT_NOT_ALLOWED'
      if (code === 'UNAUTHENTICATED' || (code === 'FORBIDDEN' && reason !== undefined))
        authFailures.inc({ kind: isToken ? 'console' : 'application', reason: label })
    },

    /** Counts an alert of the guard. Countries are a closed list. */
    recordGuardAlert(country: string): void {
      guardAlerts.inc({ country })
    },

    recordBroken: addInvariantMetrics(registry),

    recordChallenge(outcome: 'passed' | 'failed' | 'unavailable'): void {
      challenges.inc({ outcome })
    },

    /** Counts a backup of the schedule that failed. */
    recordBackupFailure(): void {
      backupGauges?.failures.inc()
    },

    /** Sets where the certificate of HTTPS is read; its names are a closed list. */
    watchCertificate: (read: () => Certificate | undefined): void => void (readCertificate = read),

    recordRenewal(outcome: 'renewed' | 'failed'): void {
      renewals.inc({ outcome })
    },

    /** Counts an attempt to send through a provider, named as in the configuration. */
    observeProviderSend(provider: string, outcome: string, durationMs: number): void {
      deliveries.observe({ provider, outcome }, durationMs / 1000)
    },

    recordCircuitOpened: (provider: string): void => opened.inc({ provider }),

    /** Sets where circuits and waiting messages are read. */
    watchDelivery: (read: Sources): void => void (sources = read),

    /** Wraps a store to count the writes that wait or are under way. */
    instrumentWrites: (store: Store): Store => ({
      read: store.read,
      whenDurable: store.whenDurable,
      changes: store.changes,
      write: (body, options) => inQueue('writes', store.write(body, options)),
      decide: (operation) => inQueue('writes', store.decide(operation)),
    }),

    /** Wraps an identity provider to count logins and those that failed. */
    instrumentLogins(provider: IdentityProvider): IdentityProvider {
      const grant: IdentityProvider['grant'] = async (form, client) => {
        try {
          const response = await inQueue('logins', provider.grant(form, client))
          if (isTokenError(response)) authFailures.inc({ kind: 'login', reason: response.error })
          return response
        } catch (error) {
          authFailures.inc({ kind: 'login', reason: errorLabel(error) })
          throw error
        }
      }
      return { ...provider, grant }
    },

    /** Wraps a webhook sender to count its attempts. */
    instrumentWebhooks:
      (send: SendWebhook): SendWebhook =>
      async (message, signal) => {
        const result = await inQueue('webhooks', send(message, signal))
        webhooks.inc({ outcome: result.error ?? 'delivered' })
        return result
      },

    contentType: registry.contentType,

    /** Renders all metrics in the Prometheus text format. */
    async render(): Promise<string> {
      const { names, notAfter } = readCertificate() ?? { names: [], notAfter: 0 }
      expiry.reset()
      for (const domain of names) expiry.set({ domain }, Math.round((notAfter - Date.now()) / 1000))
      circuits.reset()
      for (const { name, isOpen } of sources.circuits()) circuits.set({ provider: name }, isOpen ? 1 : 0)
      // Values of a database that is away are NaN: the other metrics tell then what callers get.
      const [messages, backlog] = await Promise.all([
        sources.pendingMessages().catch(() => Number.NaN),
        needs.backlog().catch(() => ({ pending: Number.NaN, oldestAt: Number.NaN })),
      ])
      queues.set({ queue: 'messages' }, messages)
      pending.set(backlog.pending)
      oldest.set(backlog.oldestAt === null ? 0 : Math.max(0, needs.now() - backlog.oldestAt) / 1000)
      if (backups && backupGauges) {
        const last = backups.last() ?? (backups.areScheduled ? { at: 0, bytes: 0 } : null)
        backupGauges.at.set(last ? last.at / 1000 : Number.NaN)
        backupGauges.bytes.set(last ? last.bytes : Number.NaN)
      }
      return registry.metrics()
    },
  }
}

/** Converts the pattern of a route, such as `/v1/projects/:id/`, to the path of the API document. */
const documentedPath = (route: string) => route.replace(/(?<=.)\/$/, '').replaceAll(/:(\w+)/g, '{$1}')

const isTokenError = (response: object): response is TokenErrorResponse => 'error' in response

function errorLabel(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'internal'
  const { reason, code }: { reason?: unknown; code?: unknown } = error
  const label = reason ?? code
  return typeof label === 'string' ? label.toLowerCase() : 'internal'
}
