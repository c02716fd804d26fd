import { wayKey, type Carried, type Failure, type Letter, type Way } from '../domain/model/delivery.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Rest } from './circuit-breaker.ts'
import type { Fleet, Post } from './provider-pool.ts'
import { uncertain, type OutgoingMessage, type SendOutcome } from './kit/provider.ts'
import { speakPlainly } from './text/speech.ts'
import type { Messages } from './text/templates.ts'

/** For all providers that one attempt asks together: nobody waits longer for the answer to a send. */
const attemptMsUsual = 8_000
/** What a provider gets to wind up when its time is over. */
const graceMs = 250
/** So that a provider that hangs keeps its own messages waiting, and nobody else's. */
const perProviderMax = 200
/** Until a provider that is full is asked again. */
const busyMs = 1_000

/** For the operator's log. Phones, codes and texts are never among the fields. */
export type Report = (level: 'info' | 'warn' | 'error', text: string, fields: Record<string, unknown>) => void

export type CarrierNeeds = {
  fleet: Fleet
  clock: Clock
  messages: Messages
  waysOf(letter: Letter): Way[]
  /** Where a provider tells of receipts; null where it could not reach it. */
  callbackUrl(provider: string): string | null
  report: Report
  /** Told of every message that a provider was given, and what became of that. */
  onCarried?: ((provider: string, outcome: string, tookMs: number) => void) | undefined
  attemptMs?: number | undefined
  /** Told when a provider begins to rest, and that it works again. */
  onRest(provider: string, rest: Rest | undefined): void
}

/** Offers letters to providers: one after the other, until one has it or may have it. */
export function createCarrier(needs: CarrierNeeds) {
  const {
    fleet,
    clock,
    messages,
    waysOf,
    callbackUrl,
    report,
    onRest,
    onCarried,
    attemptMs = attemptMsUsual,
  } = needs
  const closing = new AbortController()
  const underWay = new Set<Promise<unknown>>()

  async function carryBy(ways: Way[], letter: Letter): Promise<Carried> {
    const signal = AbortSignal.any([AbortSignal.timeout(attemptMs), closing.signal])
    const excluded = new Set(letter.excluded)
    let last: Failure | null = null
    let waitMs = Infinity
    for (const way of ways) {
      if (excluded.has(wayKey(way))) continue
      const post = fleet.find(way.provider)
      if (!post?.provider.channels.includes(way.channel)) {
        excluded.add(wayKey(way))
        continue
      }
      const now = clock.now()
      const rest = post.breaker.rest(now)
      if (rest || post.inFlight >= perProviderMax || signal.aborted) {
        last = rest?.failure ?? last
        waitMs = Math.min(waitMs, rest ? rest.untilMs - now : busyMs)
        if (rest) exclude(rest.failure, way, ways, excluded)
        continue
      }
      const outcome = await offer(post, way, letter, signal)
      if (outcome.kind === 'accepted') return { ...outcome, way }
      if (outcome.kind === 'uncertain') return { ...outcome, way }
      last = outcome.failure
      exclude(outcome.failure, way, ways, excluded)
      waitMs = Math.min(waitMs, (outcome.failure.retryAfterSeconds ?? 0) * 1000)
    }
    if (ways.every((way) => excluded.has(wayKey(way)))) {
      if (last === null) report('warn', 'no provider for a message', aboutLetter(letter))
      return { kind: 'refused', failure: last ?? noRoute }
    }
    return {
      kind: 'later',
      failure: last,
      excluded: [...excluded],
      waitMs: Number.isFinite(waitMs) ? waitMs : 0,
    }
  }

  async function offer(post: Post, way: Way, letter: Letter, signal: AbortSignal): Promise<SendOutcome> {
    const { name, provider, breaker } = post
    const startedAt = clock.now()
    breaker.begin(startedAt)
    const message = write(way, letter, startedAt)
    const outcome = await fleet.use(post, () => endWith(provider.send(message, signal), signal))
    const now = clock.now()
    const about = { ...aboutLetter(letter), ...way, tookMs: now - startedAt }
    onCarried?.(name, outcome.kind, about.tookMs)
    if (outcome.kind === 'accepted') report('info', 'message accepted', about)
    else {
      const { class: failure, at, permanent, providerCode } = outcome.failure
      report('warn', `message ${outcome.kind}`, { ...about, failure, at, permanent, providerCode })
    }
    noteHealth(name, breaker.end(outcome, now), breaker.rest(now), now)
    return outcome
  }

  function noteHealth(
    name: string,
    change: 'rests' | 'works' | undefined,
    rest: Rest | undefined,
    now: number,
  ) {
    if (change === 'works') report('info', 'provider works again', { provider: name })
    if (change === 'rests' && rest) {
      const { failure, untilMs } = rest
      const forMs = untilMs - now
      report('warn', 'provider rests', { provider: name, failure: failure.class, forMs })
    }
    if (change) onRest(name, rest)
  }

  /** What a provider throws, or a promise that it forgets, must not keep a message from its end. */
  async function endWith(sending: Promise<SendOutcome>, signal: AbortSignal): Promise<SendOutcome> {
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

  function write({ channel, provider }: Way, letter: Letter, now: number): OutgoingMessage {
    const { request, code, application, attempt } = letter
    const written = messages.write(request, code, application, now)
    const words = { code, locale: written.locale, applicationName: application.name }
    const { text, locale } = channel === 'voice' ? speakPlainly(words) : written
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
    carry(letter: Letter): Promise<Carried> {
      const carrying = carryBy(waysOf(letter), letter)
      underWay.add(carrying)
      return carrying.finally(() => underWay.delete(carrying))
    },

    /** Gives up what has not ended within that time. What may have been handed over by then counts as uncertain. */
    async stop(withinMs: number): Promise<void> {
      const timer = setTimeout(() => closing.abort(), withinMs)
      await Promise.allSettled(underWay)
      clearTimeout(timer)
      closing.abort()
    },
  }
}

/** Takes out what will never carry this message: this way, or the whole channel where the number is at fault. */
function exclude(failure: Failure, way: Way, ways: readonly Way[], excluded: Set<string>): void {
  if (!failure.permanent) return
  excluded.add(wayKey(way))
  if (failure.at !== 'number') return
  for (const other of ways) if (other.channel === way.channel) excluded.add(wayKey(other))
}

const aboutLetter = ({ request, attempt }: Letter) => ({ requestId: request.id, attempt })

const noRoute: Failure = { class: 'unknown', permanent: true, at: 'route', providerCode: null }
