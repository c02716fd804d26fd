import type { Pdu, PduFields } from 'smpp'
import { bindSession, submitMessage, unbind } from './smpp-session.ts'
import type { BoundSession, ConnectFailure, SmppSettings, SmppTimes, Submission } from './smpp-session.ts'
import { minuteMs } from '../../shared/durations.ts'

const defaultTimes: SmppTimes = {
  bindMs: 10_000,
  responseMs: 10_000,
  backoffMinMs: 1_000,
  backoffMaxMs: minuteMs,
}

type SmppLink = {
  /**
   * Connects, and stays connected until `close`.
   *
   * @param onConnection called when it is bound, and when it could not be
   */
  open(onConnection: (result: BoundSession | (ConnectFailure & { retryMs: number })) => void): void
  /**
   * Submits a PDU. Never throws. Waits for a connection in progress, but not for a reconnect that is still to
   * come.
   */
  submit(fields: PduFields, signal: AbortSignal): Promise<Submission>
  close(): Promise<void>
}

/**
 * One connection to an SMSC. Reconnects and binds again after a loss, with exponential backoff and jitter.
 *
 * @param onDeliver called with each `deliver_sm` and `data_sm`, messages as bytes; returns false to have it
 *   sent again
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
  let notify: Parameters<SmppLink['open']>[0] = () => {}

  const acquire = (): Promise<BoundSession | ConnectFailure> => {
    if (isClosed) return Promise.resolve({ kind: 'down', code: 'CLOSED' })
    if (boundSession) return Promise.resolve(boundSession)
    // Fail fast, so that the message fails over now; more attempts would not help an SMSC that is down or
    // locks us out.
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
        // Resets the backoff only after a long session: an SMSC that drops each session right after the bind
        // is down.
        if (performance.now() - startedAt > times.backoffMaxMs) failures = 0
        scheduleReconnect({ kind: 'down', code: 'CONNECTION_LOST' })
      },
    }).catch((): ConnectFailure => ({ kind: 'down', code: 'ERROR' }))
    connecting = undefined
    if (isClosed) {
      if (result.kind === 'bound') result.session.destroy()
      return { kind: 'down', code: 'CLOSED' }
    }
    if (result.kind === 'bound') {
      boundSession = result
      notify(result)
    } else {
      scheduleReconnect(result)
      // With the time that the next attempt may take.
      notify({ ...result, retryMs: 2 * times.backoffMaxMs + times.bindMs })
    }
    return result
  }

  const scheduleReconnect = (cause: ConnectFailure) => {
    if (isClosed || backoff) return
    const backoffMs = Math.min(times.backoffMaxMs, times.backoffMinMs * 2 ** Math.min(failures++, 16))
    // Jitter: servers that lost the same SMSC should not all reconnect at once.
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
    open(onConnection) {
      notify = onConnection
      void acquire()
    },

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
