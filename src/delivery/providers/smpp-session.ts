import net from 'node:net'
import type { Pdu, PduFields, Session } from 'smpp'

export type SmppSettings = {
  host: string
  port: number
  tls: boolean
  /** Certificates to trust instead of the system's, in PEM. */
  ca: string | undefined
  systemId: string
  password: string
  systemType: string
  bind: 'transceiver' | 'transmitter'
  enquireLinkMs: number
}

export type SmppTimes = {
  /** Timeout for connecting and binding, including TLS. */
  bindMs: number
  /** Timeout for the response to an `enquire_link`. */
  responseMs: number
  /** First delay before a reconnect; doubles with each failure. */
  backoffMinMs: number
  backoffMaxMs: number
}

/**
 * Result of a `submit_sm`. `not_sent`: it was certainly not written; has `bindStatus` if the SMSC refused the
 * bind. `no_response`: it was written, but the wait was aborted or the connection ended before the response.
 */
export type Submission =
  | { kind: 'response'; status: number; messageId: string | null }
  | { kind: 'not_sent'; code: string; bindStatus?: number }
  | { kind: 'no_response'; code: string }

export type ConnectFailure = { kind: 'down'; code: string; bindStatus?: number }
/**
 * A bound session. `pendingSubmits` holds a callback per unanswered `submit_sm`, called when the connection
 * ends.
 */
export type BoundSession = { kind: 'bound'; session: Session; pendingSubmits: Set<() => void> }

/** ESME_RX_T_APPN (SMPP 3.4 §5.1.3): a temporary error on our side, so the SMSC sends its PDU again. */
const temporaryError = 0x64

/** Loads the library, only if a configuration uses SMPP, and removes two of its decoders. */
async function loadSmpp() {
  const { default: smpp } = await import('smpp')
  // The first decodes the plain ASCII of receipts as GSM, where the code of an underscore is another
  // character. The one for `message_payload` assigns to an undeclared variable, an error in a bundle's strict
  // mode.
  delete smpp.commands.deliver_sm.params.short_message.filter
  delete smpp.tlvs.message_payload.filter
  return smpp
}

type SessionEvents = { onDeliver(pdu: Pdu): boolean; onLost(): void }

/** Connects and binds, then responds to the SMSC's PDUs and keeps the session alive. */
export async function bindSession(
  settings: SmppSettings,
  times: SmppTimes,
  { onDeliver, onLost }: SessionEvents,
): Promise<BoundSession | ConnectFailure> {
  const smpp = await loadSmpp()
  const { host, port, tls, ca, systemId, password, systemType, bind } = settings
  const { promise, resolve } = Promise.withResolvers<BoundSession | ConnectFailure>()
  let boundSession: BoundSession | undefined
  let keepAlive: KeepAlive | undefined

  const session = smpp.connect(
    {
      host,
      port,
      tls,
      // Explicit, so that no environment variable disables certificate verification.
      rejectUnauthorized: true,
      ...(net.isIP(host) === 0 && { servername: host }),
      ...(ca !== undefined && { ca }),
    },
    () => {
      const fields = { system_id: systemId, password, system_type: systemType, interface_version: 0x34 }
      session[`bind_${bind}`](fields, ({ command_status: status }) => {
        if (status !== 0) return fail(`BIND_0x${status.toString(16)}`, status)
        clearTimeout(timer)
        keepAlive = startKeepAlive(session, settings.enquireLinkMs, times.responseMs)
        boundSession = { kind: 'bound', session, pendingSubmits: new Set() }
        resolve(boundSession)
      })
    },
  )

  const fail = (code: string, bindStatus?: number) => {
    clearTimeout(timer)
    resolve({ kind: 'down', code, ...(bindStatus !== undefined && { bindStatus }) })
    session.destroy()
  }
  const timer = setTimeout(() => fail('BIND_TIMEOUT'), times.bindMs)

  // After an error the library stops reading from this connection.
  session.on('error', ({ code }) => fail(code ?? 'ERROR'))
  session.on('close', () => {
    keepAlive?.stop()
    fail('ECONNRESET')
    if (!boundSession) return
    for (const notifyLost of boundSession.pendingSubmits) notifyLost()
    onLost()
  })
  session.on('enquire_link', (pdu) => session.send(pdu.response()))
  session.on('unknown', (pdu) => session.send(pdu.response()))
  session.on('unbind', (pdu) => {
    session.send(pdu.response())
    session.close()
  })
  for (const command of ['deliver_sm', 'data_sm'] as const) {
    session.on(command, (pdu) => {
      const responseFields = onDeliver(pdu) ? {} : { command_status: temporaryError }
      session.send(pdu.response(responseFields))
    })
  }
  return promise
}

type KeepAlive = { stop(): void }

/**
 * Keep-alive (SMPP 3.4 §4.11): sends `enquire_link` periodically, and destroys the session if no response
 * arrives.
 */
function startKeepAlive(session: Session, intervalMs: number, responseMs: number): KeepAlive {
  let responseTimer: Timer | undefined
  const interval = setInterval(() => {
    responseTimer ??= setTimeout(() => session.destroy(), responseMs)
    session.enquire_link({}, () => {
      clearTimeout(responseTimer)
      responseTimer = undefined
    })
  }, intervalMs)
  return {
    stop() {
      clearInterval(interval)
      clearTimeout(responseTimer)
    },
  }
}

/** Submits one message. Never rejects; settles early if the signal aborts or the connection is lost. */
export function submitMessage(
  { session, pendingSubmits }: BoundSession,
  fields: PduFields,
  signal: AbortSignal,
): Promise<Submission> {
  const { promise, resolve } = Promise.withResolvers<Submission>()
  const settle = (submission: Submission) => {
    pendingSubmits.delete(onLost)
    signal.removeEventListener('abort', onAbort)
    resolve(submission)
  }
  const onLost = () => settle({ kind: 'no_response', code: 'ECONNRESET' })
  const onAbort = () => settle({ kind: 'no_response', code: 'ABORTED' })
  pendingSubmits.add(onLost)
  signal.addEventListener('abort', onAbort)
  const isWritten = session.submit_sm(fields, ({ command_status: status, message_id: id }) => {
    settle({ kind: 'response', status, messageId: typeof id === 'string' && id !== '' ? id : null })
  })
  if (!isWritten) settle({ kind: 'not_sent', code: 'NOT_WRITABLE' })
  return promise
}

/** Unbinds and closes the session; destroys it after `waitMs`. */
export function unbind(session: Session, waitMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => session.destroy(), waitMs)
  session.on('close', () => {
    clearTimeout(timer)
    resolve()
  })
  if (!session.unbind({}, () => session.close())) session.destroy()
  return promise
}
