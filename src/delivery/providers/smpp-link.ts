import type { Pdu, PduFields } from 'smpp'
import { bindSession, submitOver, unbind } from './smpp-session.ts'
import type { Bound, Down, SmppSettings, SmppTimes, Submission } from './smpp-session.ts'

const usualTimes: SmppTimes = { bindMs: 10_000, answerMs: 10_000, pauseMsMin: 1_000, pauseMsMax: 60_000 }

export type SmppLink = {
  /** Connects, and keeps connected from then on. */
  open(): void
  /** Never throws. Waits for a connection that is just being made, and for no other. */
  submit(fields: PduFields, signal: AbortSignal): Promise<Submission>
  close(): Promise<void>
}

/**
 * One connection to an SMSC that binds itself again whenever it was lost, ever less often while that fails.
 *
 * @param onDeliver gets each `deliver_sm` and `data_sm`, with messages as bytes; false where it cannot be taken now
 */
export function createSmppLink(
  settings: SmppSettings,
  onDeliver: (pdu: Pdu) => boolean,
  times: SmppTimes = usualTimes,
): SmppLink {
  let bound: Bound | undefined
  let connecting: Promise<Bound | Down> | undefined
  let pause: { timer: Timer; because: Down } | undefined
  let failures = 0
  let closed = false

  const acquire = (): Promise<Bound | Down> => {
    if (closed) return Promise.resolve({ kind: 'down', code: 'CLOSED' })
    if (bound) return Promise.resolve(bound)
    // Whoever has another way should take it now; more tries would not help an SMSC that is down, or locks us out.
    if (pause) return Promise.resolve(pause.because)
    connecting ??= connect()
    return connecting
  }

  const connect = async (): Promise<Bound | Down> => {
    const startedAt = performance.now()
    const result = await bindSession(settings, times, {
      onDeliver,
      onLost: () => {
        bound = undefined
        // A connection that is ended each time as soon as it is bound is no better than none.
        if (performance.now() - startedAt > times.pauseMsMax) failures = 0
        rest({ kind: 'down', code: 'CONNECTION_LOST' })
      },
    }).catch((): Down => ({ kind: 'down', code: 'ERROR' }))
    connecting = undefined
    if (closed) {
      if (result.kind === 'bound') result.session.destroy()
      return { kind: 'down', code: 'CLOSED' }
    }
    if (result.kind === 'bound') bound = result
    else rest(result)
    return result
  }

  const rest = (because: Down) => {
    if (closed || pause) return
    const length = Math.min(times.pauseMsMax, times.pauseMsMin * 2 ** Math.min(failures++, 16))
    // Several servers that lost the same SMSC should not all come back at once.
    const timer = setTimeout(
      () => {
        pause = undefined
        void acquire()
      },
      length * (0.75 + Math.random() / 2),
    )
    pause = { timer, because }
  }

  return {
    open: () => void acquire(),

    async submit(fields, signal) {
      if (signal.aborted) return { kind: 'unsent', code: 'ABORTED' }
      const { promise: aborted, resolve } = Promise.withResolvers<Down>()
      const abort = () => resolve({ kind: 'down', code: 'ABORTED' })
      signal.addEventListener('abort', abort, { once: true })
      const way = await Promise.race([acquire(), aborted])
      signal.removeEventListener('abort', abort)
      if (way.kind === 'down') return { ...way, kind: 'unsent' }
      return submitOver(way, fields, signal)
    },

    async close() {
      closed = true
      clearTimeout(pause?.timer)
      const session = bound?.session
      bound = undefined
      if (session) await unbind(session, Math.min(times.answerMs, 1_000))
    },
  }
}
