import {
  candidateKey,
  isExcludedWith,
  type Dispatched,
  type DeliveryTry,
  type Failure,
  type DeliveryJob,
  type Candidate,
} from '../domain/model/delivery.ts'
import type { Clock } from '../domain/model/clock.ts'
import { attemptMsMax } from '../domain/model/message.ts'
import type { MessageCost } from '../domain/model/price.ts'
import type { CircuitTransition, OpenState } from './circuit-breaker.ts'
import type { Costs } from './costs.ts'
import { ownTextFailure, showsText } from './own-text.ts'
import type { ProviderPool, ProviderHandle } from './provider-pool.ts'
import type { DispatchPlan } from './routing.ts'
import {
  accepted,
  uncertain,
  type ConnectionState,
  type OutgoingMessage,
  type SendOutcome,
} from './kit/provider.ts'
import { renderPlainSpeech } from './text/speech.ts'
import type { MessageRenderer } from './text/message-renderer.ts'
import type { Timers } from '../world/world.ts'

/** Time for a provider to return its own outcome after the deadline, before it counts as hung. */
const graceMs = 250
/** Delay before a provider that had no permit for the developer is tried again. */
const busyRetryMs = 1_000

/** Writes a line to the operator's log. The fields must never hold phone numbers, codes or message texts. */
export type Report = (level: 'info' | 'warn' | 'error', text: string, fields: Record<string, unknown>) => void

type DispatcherNeeds = {
  pool: ProviderPool
  clock: Clock
  messages: MessageRenderer
  plan(job: DeliveryJob): DispatchPlan
  /** URL for the provider's delivery receipts; null if the provider could not reach it. */
  callbackUrl(provider: string): string | null
  report: Report
  /** Called after each provider that was tried, with its outcome and duration, for metrics. */
  onProviderTried?: ((provider: string, outcome: string, tookMs: number) => void) | undefined
  dispatchMs?: number | undefined
  timers: Timers
  costs: Pick<Costs, 'costOf'>
  /** Called when a provider's circuit opens, and with undefined when it closes. */
  onCircuitChange(provider: string, openState: OpenState | undefined): void
}

/**
 * Dispatches messages with failover: tries the candidates in order until one accepts the message or may have
 * accepted it.
 */
export function createDispatcher(needs: DispatcherNeeds) {
  const {
    pool,
    clock,
    messages,
    plan,
    callbackUrl,
    report,
    onCircuitChange,
    onProviderTried,
    dispatchMs = attemptMsMax,
    timers,
    costs,
  } = needs
  const shutdown = new AbortController()
  const inFlight = new Set<Promise<unknown>>()

  async function tryCandidates({ candidates, choices }: DispatchPlan, job: DeliveryJob): Promise<Dispatched> {
    const choicesLeft = new Map(choices.map((choice) => [choice.channel, choice]))
    const withinMs = Math.min(dispatchMs, job.withinMs ?? dispatchMs)
    const signal = AbortSignal.any([timers.timeoutSignal(withinMs), shutdown.signal])
    // Also by the clock: a process that was paused may notice a failed send before the signal.
    const deadline = clock.now() + withinMs
    const excluded = new Set(job.excluded)
    const tries: DeliveryTry[] = []
    let lastFailure: Failure | null = null
    let waitMs = Infinity
    for (const candidate of candidates) {
      if (excluded.has(candidateKey(candidate))) continue
      const handle = pool.find(candidate.provider)
      if (!handle?.channels.includes(candidate.channel)) {
        excluded.add(candidateKey(candidate))
        continue
      }
      const now = clock.now()
      if (job.request.template?.variables && !showsText(handle, candidate.channel)) {
        report('warn', 'provider cannot show the payment', { ...jobLogFields(job), ...candidate })
        tries.push(toTry(candidate, { kind: 'refused', failure: ownTextFailure }, now, now))
        lastFailure = ownTextFailure
        excluded.add(candidateKey(candidate))
        continue
      }
      const openState = handle.breaker.openState(now)
      if (openState) {
        lastFailure = openState.failure
        waitMs = Math.min(waitMs, openState.openUntilMs - now)
        excludeCandidates(openState.failure, candidate, candidates, excluded)
        continue
      }
      const returnPermit = signal.aborted || now >= deadline ? undefined : handle.permits.take(job.request)
      if (!returnPermit) {
        waitMs = Math.min(waitMs, busyRetryMs)
        continue
      }
      const { outcome, cost } = await tryProvider(handle, candidate, job, signal).finally(returnPermit)
      const choice = choicesLeft.get(candidate.channel)
      choicesLeft.delete(candidate.channel)
      const tried = {
        ...toTry(candidate, outcome, now, clock.now()),
        ...(choice && { choice }),
        ...(cost && { cost }),
      }
      tries.push(tried)
      if (outcome.kind === 'accepted')
        return { kind: 'accepted', messageId: outcome.messageId, candidate, cost, tries }
      const { developerId, id: requestId } = job.request
      handle.refusals.add(developerId, { ...tried, requestId })
      if (outcome.kind === 'uncertain') return { ...outcome, candidate, cost, tries }
      lastFailure = outcome.failure
      excludeCandidates(outcome.failure, candidate, candidates, excluded)
      // 0 cancels any longer wait: the caller's backoff alone decides.
      waitMs = Math.min(waitMs, (outcome.failure.retryAfterSeconds ?? 0) * 1000)
    }
    // Also when there are no candidates.
    if (candidates.every((candidate) => excluded.has(candidateKey(candidate)))) {
      if (lastFailure === null) report('warn', 'no provider for a message', jobLogFields(job))
      return { kind: 'refused', failure: lastFailure ?? noRoute, tries }
    }
    return { kind: 'deferred', failure: lastFailure, excluded: [...excluded], waitMs, tries }
  }

  async function tryProvider(
    handle: ProviderHandle,
    candidate: Candidate,
    job: DeliveryJob,
    signal: AbortSignal,
  ): Promise<{ outcome: SendOutcome; cost: MessageCost | undefined }> {
    const { name, provider, breaker } = handle
    const startedAt = clock.now()
    const message = buildMessage(candidate, job, startedAt)
    // Nothing may throw between `beginSend` and `recordOutcome`: a half-open circuit would wait forever for
    // the outcome of its probe.
    breaker.beginSend(startedAt)
    const outcome = await pool.use(handle, () => settleWithin(() => provider.send(message, signal), signal))
    const now = clock.now()
    const transition = breaker.recordOutcome(outcome, now)
    const via = outcome.kind === 'accepted' && outcome.via !== undefined ? { via: outcome.via } : {}
    const logFields = { ...jobLogFields(job), ...candidate, ...via, tookMs: now - startedAt }
    onProviderTried?.(name, outcome.kind, logFields.tookMs)
    if (outcome.kind === 'accepted') report('info', 'message accepted', logFields)
    else {
      const { class: failure, at, permanent, providerCode, reply } = outcome.failure
      const cause = { failure, at, permanent, providerCode, ...(reply != null && { reply }) }
      report('warn', `message ${outcome.kind}`, { ...logFields, ...cause })
    }
    // New settings may have replaced the provider meanwhile: its circuit is gone.
    if (transition && pool.find(name) === handle)
      reportCircuitChange(name, transition, breaker.openState(now), now)
    const cost = outcome.kind === 'refused' ? undefined : costs.costOf(handle, message, outcome)
    return { outcome, cost }
  }

  function reportCircuitChange(
    name: string,
    transition: CircuitTransition,
    openState: OpenState | undefined,
    now: number,
  ) {
    if (transition === 'closed') report('info', 'provider circuit closed', { provider: name })
    if (transition === 'open' && openState) {
      const { failure, openUntilMs } = openState
      const forMs = openUntilMs - now
      report('warn', 'provider circuit opened', { provider: name, failure: failure.class, forMs })
    }
    onCircuitChange(name, openState)
  }

  /** Guarantees an outcome: a send that throws, or whose promise never settles, becomes `uncertain`. */
  async function settleWithin(send: () => Promise<SendOutcome>, signal: AbortSignal): Promise<SendOutcome> {
    const { promise, resolve } = Promise.withResolvers<SendOutcome>()
    const giveUp = () => timers.setTimeout(() => resolve(uncertain('TIMEOUT')), graceMs)
    signal.addEventListener('abort', giveUp, { once: true })
    Promise.try(send).then(resolve, (error: unknown) => {
      report('error', 'provider threw an unexpected error', { error })
      resolve(uncertain('FAULT'))
    })
    const outcome = await promise
    signal.removeEventListener('abort', giveUp)
    return outcome
  }

  function buildMessage({ channel, provider }: Candidate, job: DeliveryJob, now: number): OutgoingMessage {
    const { request, code, application } = job
    const rendered = messages.compose(request, code, application, now)
    const speechInput = { code, locale: rendered.locale, applicationName: application.name }
    const { text, locale } = channel === 'voice' ? renderPlainSpeech(speechInput) : rendered
    return {
      requestId: request.id,
      to: request.phone,
      country: request.country,
      channel,
      text,
      code,
      locale,
      applicationName: application.name,
      validitySeconds: Math.max(1, Math.floor((request.expiresAt - now) / 1000)),
      callbackUrl: callbackUrl(provider),
      messageNumber: job.messageNumber,
      attempt: job.attempt,
      traceparent: job.traceparent,
    }
  }

  return {
    /**
     * Resolves within about eight seconds, whatever the providers do. Rejects only if a message cannot be routed
     * or composed, so before the provider in question has it.
     */
    async dispatch(job: DeliveryJob): Promise<Dispatched> {
      const dispatching = tryCandidates(plan(job), job)
      inFlight.add(dispatching)
      return dispatching.finally(() => inFlight.delete(dispatching))
    },

    /** Opens the circuit of a provider whose connection cannot be made, so that operators know it before users do. */
    recordConnection(name: string, state: ConnectionState): void {
      const handle = pool.find(name)
      if (!handle) return
      const { breaker } = handle
      const now = clock.now()
      if (state === 'connected') {
        // A connection takes a moment, in which the circuit may become half-open.
        const transition = breaker.isClosed() ? undefined : breaker.recordOutcome(accepted(null), now)
        if (transition) reportCircuitChange(name, transition, undefined, now)
        return
      }
      const { failure, retryMs } = state
      const before = breaker.openState(now)
      breaker.open(failure, now + retryMs)
      const { class: cause, providerCode } = failure
      if (before?.failure.providerCode !== providerCode)
        report('warn', 'provider connection failed', { provider: name, failure: cause, providerCode })
      onCircuitChange(name, breaker.openState(now))
    },

    /**
     * Drains dispatches for `withinMs`, then aborts the rest. An aborted send that may have reached its provider
     * is uncertain.
     */
    async stop(withinMs: number): Promise<void> {
      const timer = timers.setTimeout(() => shutdown.abort(), withinMs)
      await Promise.allSettled(inFlight)
      timers.clearTimeout(timer)
      shutdown.abort()
    },
  }
}

const toTry = (candidate: Candidate, outcome: SendOutcome, at: number, now: number): DeliveryTry => ({
  ...candidate,
  at,
  messageId: outcome.kind === 'accepted' ? outcome.messageId : null,
  outcome: outcome.kind,
  error: outcome.kind === 'accepted' ? null : outcome.failure.class,
  reply: outcome.kind === 'accepted' ? null : (outcome.failure.reply ?? null),
  latencyMs: Math.max(0, now - at),
})

/**
 * After a permanent failure, excludes the candidate, its whole channel if the number is at fault, or all candidates if the
 * message is.
 */
function excludeCandidates(
  failure: Failure,
  candidate: Candidate,
  candidates: readonly Candidate[],
  excluded: Set<string>,
): void {
  if (!failure.permanent) return
  excluded.add(candidateKey(candidate))
  for (const other of candidates)
    if (isExcludedWith(other, candidate, failure)) excluded.add(candidateKey(other))
}

const jobLogFields = ({ request, attempt }: DeliveryJob) => ({ requestId: request.id, attempt })

const noRoute: Failure = { class: 'no_route', permanent: true, at: 'route', providerCode: null }
