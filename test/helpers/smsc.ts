import smpp from 'smpp'
import type { Pdu, ServerSession } from 'smpp'

type Handler = (session: ServerSession, pdu: Pdu) => void

export type Smsc = Awaited<ReturnType<typeof startSmsc>>

/**
 * An SMSC that takes every message and keeps it. Built with the library that the client uses, so that it cannot tell
 * where both misread the protocol.
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
    /** Answers every submit with that status. */
    refuseSubmits: (status: number) =>
      void (onSubmit = (session, pdu) => session.send(pdu.response({ command_status: status }))),
    /** The only connection. */
    session(): ServerSession {
      const [session] = sessions
      if (!session) throw new Error('nobody is connected')
      return session
    },
    /** Resolves as soon as that holds. */
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
