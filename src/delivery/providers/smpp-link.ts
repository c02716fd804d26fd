import type { Pdu, PduFields } from 'smpp'
import { bindSession, submitMessage, unbind } from './smpp-session.ts'
import type { BoundSession, ConnectFailure, SmppSettings, SmppTimes, Submission } from './smpp-session.ts'

const defaultTimes: SmppTimes = {
  bindMs: 10_000,
  responseMs: 10_000,
  backoffMinMs: 1_000,
  backoffMaxMs: 60_000,
}

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
  times: SmppTimes = defaultTimes,
): SmppLink {
  let boundSession: BoundSession | undefined
  let connecting: Promise<BoundSession | ConnectFailure> | undefined
  let backoff: { timer: Timer; cause: ConnectFailure } | undefined
  let failures = 0
  let isClosed = false

  const acquire = (): Promise<BoundSession | ConnectFailure> => {
    if (isClosed) return Promise.resolve({ kind: 'down', code: 'CLOSED' })
    if (boundSession) return Promise.resolve(boundSession)
    // Whoever has another way should take it now; more tries would not help an SMSC that is down, or locks us out.
    if (backoff) return Promise.resolve(backoff.cause)
    connecting ??= connect()
    return connecting
  }

  const connect = async (): Promise<BoundSession | ConnectFailure> => {
    const startedAt = performance.now()
    const result = await bindSession(settings, times, {
      onDeliver,
      onLost: () => {
        boundSession = undefined
        // A connection that is ended each time as soon as it is bound is no better than none.
        if (performance.now() - startedAt > times.backoffMaxMs) failures = 0
        scheduleReconnect({ kind: 'down', code: 'CONNECTION_LOST' })
      },
    }).catch((): ConnectFailure => ({ kind: 'down', code: 'ERROR' }))
    connecting = undefined
    if (isClosed) {
      if (result.kind === 'bound') result.session.destroy()
      return { kind: 'down', code: 'CLOSED' }
    }
    if (result.kind === 'bound') boundSession = result
    else scheduleReconnect(result)
    return result
  }

  const scheduleReconnect = (cause: ConnectFailure) => {
    if (isClosed || backoff) return
    const backoffMs = Math.min(times.backoffMaxMs, times.backoffMinMs * 2 ** Math.min(failures++, 16))
    // Several servers that lost the same SMSC should not all come back at once.
    const timer = setTimeout(
      () => {
        backoff = undefined
        void acquire()
      },
      backoffMs * (0.75 + Math.random() / 2),
    )
    backoff = { timer, cause }
  }

  return {
    open: () => void acquire(),

    async submit(fields, signal) {
      if (signal.aborted) return { kind: 'not_sent', code: 'ABORTED' }
      const { promise: whenAborted, resolve } = Promise.withResolvers<ConnectFailure>()
      const abort = () => resolve({ kind: 'down', code: 'ABORTED' })
      signal.addEventListener('abort', abort, { once: true })
      const connection = await Promise.race([acquire(), whenAborted])
      signal.removeEventListener('abort', abort)
      if (connection.kind === 'down') return { ...connection, kind: 'not_sent' }
      return submitMessage(connection, fields, signal)
    },

    async close() {
      isClosed = true
      clearTimeout(backoff?.timer)
      const session = boundSession?.session
      boundSession = undefined
      if (session) await unbind(session, Math.min(times.responseMs, 1_000))
    },
  }
}
