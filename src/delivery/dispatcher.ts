import {
  candidateKey,
  type DispatchResult,
  type Failure,
  type DeliveryJob,
  type Candidate,
} from '../domain/model/delivery.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { OpenState } from './circuit-breaker.ts'
import type { ProviderPool, ProviderHandle } from './provider-pool.ts'
import { uncertain, type OutgoingMessage, type SendOutcome } from './kit/provider.ts'
import { renderPlainSpeech } from './text/speech.ts'
import type { MessageRenderer } from './text/message-renderer.ts'

/** For all providers that one attempt asks together: nobody waits longer for the answer to a send. */
const attemptMsDefault = 8_000
/** What a provider gets to wind up when its time is over. */
const graceMs = 250
/** So that a provider that hangs keeps its own messages waiting, and nobody else's. */
const inFlightPerProviderMax = 200
/** Until a provider that is full is asked again. */
const busyRetryMs = 1_000

/** For the operator's log. Phones, codes and texts are never among the fields. */
export type Report = (level: 'info' | 'warn' | 'error', text: string, fields: Record<string, unknown>) => void

export type DispatcherNeeds = {
  pool: ProviderPool
  clock: Clock
  messages: MessageRenderer
  candidatesFor(job: DeliveryJob): Candidate[]
  /** Where a provider tells of receipts; null where it could not reach it. */
  callbackUrl(provider: string): string | null
  report: Report
  /** Told of every message that a provider was given, and what became of that. */
  onDispatched?: ((provider: string, outcome: string, tookMs: number) => void) | undefined
  attemptMs?: number | undefined
  /** Told when a provider begins to rest, and that it works again. */
  onCircuitChange(provider: string, openState: OpenState | undefined): void
}

/** Offers letters to providers: one after the other, until one has it or may have it. */
export function createDispatcher(needs: DispatcherNeeds) {
  const {
    pool,
    clock,
    messages,
    candidatesFor,
    callbackUrl,
    report,
    onCircuitChange,
    onDispatched,
    attemptMs = attemptMsDefault,
  } = needs
  const shutdown = new AbortController()
  const inFlight = new Set<Promise<unknown>>()

  async function tryCandidates(candidates: Candidate[], job: DeliveryJob): Promise<DispatchResult> {
    const signal = AbortSignal.any([AbortSignal.timeout(attemptMs), shutdown.signal])
    const excluded = new Set(job.excluded)
    let lastFailure: Failure | null = null
    let waitMs = Infinity
    for (const candidate of candidates) {
      if (excluded.has(candidateKey(candidate))) continue
      const handle = pool.find(candidate.provider)
      if (!handle?.provider.channels.includes(candidate.channel)) {
        excluded.add(candidateKey(candidate))
        continue
      }
      const now = clock.now()
      const openState = handle.breaker.openState(now)
      if (openState || handle.inFlight >= inFlightPerProviderMax || signal.aborted) {
        lastFailure = openState?.failure ?? lastFailure
        waitMs = Math.min(waitMs, openState ? openState.openUntilMs - now : busyRetryMs)
        if (openState) excludeCandidates(openState.failure, candidate, candidates, excluded)
        continue
      }
      const outcome = await tryProvider(handle, candidate, job, signal)
      if (outcome.kind === 'accepted') return { ...outcome, candidate }
      if (outcome.kind === 'uncertain') return { ...outcome, candidate }
      lastFailure = outcome.failure
      excludeCandidates(outcome.failure, candidate, candidates, excluded)
      waitMs = Math.min(waitMs, (outcome.failure.retryAfterSeconds ?? 0) * 1000)
    }
    if (candidates.every((candidate) => excluded.has(candidateKey(candidate)))) {
      if (lastFailure === null) report('warn', 'no provider for a message', jobLogFields(job))
      return { kind: 'refused', failure: lastFailure ?? noRoute }
    }
    return {
      kind: 'deferred',
      failure: lastFailure,
      excluded: [...excluded],
      waitMs: Number.isFinite(waitMs) ? waitMs : 0,
    }
  }

  async function tryProvider(
    handle: ProviderHandle,
    candidate: Candidate,
    job: DeliveryJob,
    signal: AbortSignal,
  ): Promise<SendOutcome> {
    const { name, provider, breaker } = handle
    const startedAt = clock.now()
    breaker.beginAttempt(startedAt)
    const message = buildMessage(candidate, job, startedAt)
    const outcome = await pool.use(handle, () => settleWithin(provider.send(message, signal), signal))
    const now = clock.now()
    const logFields = { ...jobLogFields(job), ...candidate, tookMs: now - startedAt }
    onDispatched?.(name, outcome.kind, logFields.tookMs)
    if (outcome.kind === 'accepted') report('info', 'message accepted', logFields)
    else {
      const { class: failure, at, permanent, providerCode } = outcome.failure
      report('warn', `message ${outcome.kind}`, { ...logFields, failure, at, permanent, providerCode })
    }
    reportCircuitChange(name, breaker.recordOutcome(outcome, now), breaker.openState(now), now)
    return outcome
  }

  function reportCircuitChange(
    name: string,
    transition: 'open' | 'closed' | undefined,
    openState: OpenState | undefined,
    now: number,
  ) {
    if (transition === 'closed') report('info', 'provider works again', { provider: name })
    if (transition === 'open' && openState) {
      const { failure, openUntilMs } = openState
      const forMs = openUntilMs - now
      report('warn', 'provider rests', { provider: name, failure: failure.class, forMs })
    }
    if (transition) onCircuitChange(name, openState)
  }

  /** What a provider throws, or a promise that it forgets, must not keep a message from its end. */
  async function settleWithin(sending: Promise<SendOutcome>, signal: AbortSignal): Promise<SendOutcome> {
    const { promise, resolve } = Promise.withResolvers<SendOutcome>()
    const giveUp = () => setTimeout(() => resolve(uncertain('TIMEOUT')), graceMs)
    signal.addEventListener('abort', giveUp, { once: true })
    sending.then(resolve, (error: unknown) => {
      report('error', 'a provider failed', { error })
      resolve(uncertain('FAULT'))
    })
    const outcome = await promise
    signal.removeEventListener('abort', giveUp)
    return outcome
  }

  function buildMessage({ channel, provider }: Candidate, job: DeliveryJob, now: number): OutgoingMessage {
    const { request, code, application, attempt } = job
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
      attempt,
    }
  }

  return {
    /** Ends within some eight seconds, whatever the providers do. Never rejects. */
    dispatch(job: DeliveryJob): Promise<DispatchResult> {
      const dispatching = tryCandidates(candidatesFor(job), job)
      inFlight.add(dispatching)
      return dispatching.finally(() => inFlight.delete(dispatching))
    },

    /** Gives up what has not ended within that time. What may have been handed over by then counts as uncertain. */
    async stop(withinMs: number): Promise<void> {
      const timer = setTimeout(() => shutdown.abort(), withinMs)
      await Promise.allSettled(inFlight)
      clearTimeout(timer)
      shutdown.abort()
    },
  }
}

/** Takes out what will never carry this message: this way, or the whole channel where the number is at fault. */
function excludeCandidates(
  failure: Failure,
  candidate: Candidate,
  candidates: readonly Candidate[],
  excluded: Set<string>,
): void {
  if (!failure.permanent) return
  excluded.add(candidateKey(candidate))
  if (failure.at !== 'number') return
  for (const other of candidates) if (other.channel === candidate.channel) excluded.add(candidateKey(other))
}

const jobLogFields = ({ request, attempt }: DeliveryJob) => ({ requestId: request.id, attempt })

const noRoute: Failure = { class: 'unknown', permanent: true, at: 'route', providerCode: null }
