import smpp from 'smpp'
import type { Pdu, ServerSession } from 'smpp'

type Handler = (session: ServerSession, pdu: Pdu) => void

export type Smsc = Awaited<ReturnType<typeof startSmsc>>

/**
 * Starts an SMSC that accepts and records every message. It uses the same library as the client, so it cannot reveal a
 * misreading of the protocol that both share; `smpp34.ts` can.
 */
export async function startSmsc({
  key,
  cert,
  port = 0,
}: { key?: string; cert?: string; port?: number } = {}) {
  const binds: Pdu[] = []
  const submits: Pdu[] = []
  const sessions = new Set<ServerSession>()
  let enquireLinkCount = 0
  let unbindCount = 0
  let waiters: Array<{ condition(): boolean; resolve(): void }> = []
  const notifyWaiters = () => {
    for (const waiter of waiters) if (waiter.condition()) waiter.resolve()
    waiters = waiters.filter(({ condition }) => !condition())
  }
  let onBind: Handler = (session, pdu) => session.send(pdu.response())
  let onSubmit: Handler = (session, pdu) => session.send(pdu.response({ message_id: `id-${submits.length}` }))
  let onEnquire: Handler = (session, pdu) => session.send(pdu.response())

  const server = smpp.createServer(key !== undefined && cert !== undefined ? { key, cert } : {})
  server.on('error', () => {})
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => {
      sessions.delete(session)
      notifyWaiters()
    })
    for (const command of ['bind_transceiver', 'bind_transmitter']) {
      session.on(command, (pdu) => {
        binds.push(pdu)
        onBind(session, pdu)
        notifyWaiters()
      })
    }
    session.on('submit_sm', (pdu) => {
      submits.push(pdu)
      onSubmit(session, pdu)
      notifyWaiters()
    })
    session.on('enquire_link', (pdu) => {
      enquireLinkCount++
      onEnquire(session, pdu)
      notifyWaiters()
    })
    session.on('unbind', (pdu) => {
      unbindCount++
      session.send(pdu.response())
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const address = server.address()

  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    binds,
    submits,
    sessions,
    enquireLinkCount: () => enquireLinkCount,
    unbindCount: () => unbindCount,
    onBind: (handler: Handler) => void (onBind = handler),
    onSubmit: (handler: Handler) => void (onSubmit = handler),
    onEnquire: (handler: Handler) => void (onEnquire = handler),
    /** Answers every submit_sm with this command status. */
    refuseSubmits: (status: number) =>
      void (onSubmit = (session, pdu) => session.send(pdu.response({ command_status: status }))),
    /** Returns the only connection. */
    session(): ServerSession {
      const [session] = sessions
      if (!session) throw new Error('no client is connected')
      return session
    },
    /** Resolves as soon as the condition holds. */
    waitUntil(condition: () => boolean): Promise<void> {
      if (condition()) return Promise.resolve()
      return new Promise((resolve) => waiters.push({ condition, resolve }))
    },
    stop() {
      server.close()
      for (const session of sessions) session.destroy()
    },
  }
}
