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
  /** Until the connection is bound, TLS included. */
  bindMs: number
  /** Until an `enquire_link` is answered. */
  responseMs: number
  /** The pause before another connection; it doubles each time. */
  backoffMinMs: number
  backoffMaxMs: number
}

/**
 * What became of a `submit_sm`. `unsent`: it was certainly not written; `bindStatus` where the other side refused us.
 * `unanswered`: it was written and no answer came, or the connection ended before.
 */
export type Submission =
  | { kind: 'response'; status: number; messageId: string | null }
  | { kind: 'not_sent'; code: string; bindStatus?: number }
  | { kind: 'no_response'; code: string }

export type ConnectFailure = { kind: 'down'; code: string; bindStatus?: number }
/** `waiting`: what is to be told when the connection ends. */
export type BoundSession = { kind: 'bound'; session: Session; pendingSubmits: Set<() => void> }

/** SMPP 3.4 §5.1.3: an error on our side that goes away; the other side sends its PDU again. */
const temporaryError = 0x64

/** The library, without what stands in our way. Loaded only where a configuration names an SMSC. */
async function loadSmpp() {
  const { default: smpp } = await import('smpp')
  // Its decoder takes the plain ASCII of receipts for the GSM alphabet, where an underscore is another character, and
  // the one of `message_payload` assigns to a variable that it never declared: an error in the strict mode of a bundle.
  delete smpp.commands.deliver_sm.params.short_message.filter
  delete smpp.tlvs.message_payload.filter
  return smpp
}

type SessionEvents = { onDeliver(pdu: Pdu): boolean; onLost(): void }

/** Connects and binds; from then on answers what the other side asks, and watches whether it is still there. */
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
      // Given, so that no variable of the environment turns the check off.
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

  // After an error the library reads nothing more of this connection.
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

/** SMPP 3.4 §4.11: asks now and then whether the other side is there, and gives up where nothing comes back. */
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
