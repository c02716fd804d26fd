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
  answerMs: number
  /** The pause before another connection; it doubles each time. */
  pauseMsMin: number
  pauseMsMax: number
}

/**
 * What became of a `submit_sm`. `unsent`: it was certainly not written; `bindStatus` where the other side refused us.
 * `unanswered`: it was written and no answer came, or the connection ended before.
 */
export type Submission =
  | { kind: 'answered'; status: number; messageId: string | null }
  | { kind: 'unsent'; code: string; bindStatus?: number }
  | { kind: 'unanswered'; code: string }

export type Down = { kind: 'down'; code: string; bindStatus?: number }
/** `waiting`: what is to be told when the connection ends. */
export type Bound = { kind: 'bound'; session: Session; waiting: Set<() => void> }

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
): Promise<Bound | Down> {
  const smpp = await loadSmpp()
  const { host, port, tls, ca, systemId, password, systemType, bind } = settings
  const { promise, resolve } = Promise.withResolvers<Bound | Down>()
  let bound: Bound | undefined
  let watch: SessionWatch | undefined

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
        watch = watchSession(session, settings.enquireLinkMs, times.answerMs)
        bound = { kind: 'bound', session, waiting: new Set() }
        resolve(bound)
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
    watch?.stop()
    fail('ECONNRESET')
    if (!bound) return
    for (const tell of bound.waiting) tell()
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
      const answer = onDeliver(pdu) ? {} : { command_status: temporaryError }
      session.send(pdu.response(answer))
    })
  }
  return promise
}

type SessionWatch = { stop(): void }

/** SMPP 3.4 §4.11: asks now and then whether the other side is there, and gives up where nothing comes back. */
function watchSession(session: Session, everyMs: number, answerMs: number): SessionWatch {
  let patience: Timer | undefined
  const interval = setInterval(() => {
    patience ??= setTimeout(() => session.destroy(), answerMs)
    session.enquire_link({}, () => {
      clearTimeout(patience)
      patience = undefined
    })
  }, everyMs)
  return {
    stop() {
      clearInterval(interval)
      clearTimeout(patience)
    },
  }
}

export function submitOver(
  { session, waiting }: Bound,
  fields: PduFields,
  signal: AbortSignal,
): Promise<Submission> {
  const { promise, resolve } = Promise.withResolvers<Submission>()
  const settle = (submission: Submission) => {
    waiting.delete(lose)
    signal.removeEventListener('abort', abort)
    resolve(submission)
  }
  const lose = () => settle({ kind: 'unanswered', code: 'ECONNRESET' })
  const abort = () => settle({ kind: 'unanswered', code: 'ABORTED' })
  waiting.add(lose)
  signal.addEventListener('abort', abort)
  const isWritten = session.submit_sm(fields, ({ command_status: status, message_id: id }) => {
    settle({ kind: 'answered', status, messageId: typeof id === 'string' && id !== '' ? id : null })
  })
  if (!isWritten) settle({ kind: 'unsent', code: 'NOT_WRITABLE' })
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
