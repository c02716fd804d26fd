import type net from 'node:net'
import ipaddr from 'ipaddr.js'
import { secondMs } from '../shared/durations.ts'
import { systemWorld } from '../world/system.ts'
import type { HostAddress, Timer, World } from '../world/world.ts'

/** Where a webhook goes. `addresses` were resolved from `host` and checked for this webhook. */
export type Target = {
  isSecure: boolean
  /** Host name or IP address, without brackets and trailing dot. */
  host: string
  port: number
  addresses: readonly HostAddress[]
}

/** The exchange that uses a connection. */
type ConnectionUser = {
  /** The connection is open, and for https the certificate is verified. */
  onOpen(): void
  onData(bytes: Buffer): void
  /** The connection ended. Called at most once; `onData` is not called afterwards. */
  onEnd(): void
}

export type Connection = {
  /** The phase in which the connection is; it decides which error a broken one is. */
  phase(): 'connect' | 'tls' | 'open'
  write(bytes: Buffer): void
  /** Closes the connection without calling `onEnd`. */
  destroy(): void
  /** Returns the connection after a complete response, for the next request to the same target. */
  release(): void
}

/** A connection in the pool, or in use. */
type Pooled = Connection & {
  socket: net.Socket
  /** Undefined while it connects, and if its address is none of the checked ones. */
  key: string | undefined
  user: ConnectionUser | undefined
  idleSince: number
}

export type Connections = ReturnType<typeof createConnections>

/**
 * Pool of keep-alive connections. A connection is found only by origin and by the address that it is connected to, and
 * that address must be among those checked for the webhook: after a change of DNS, or of the SSRF rules, it is found no
 * more. A certificate is verified for the host before the connection is open, also when its TLS session is resumed.
 *
 * Connections in use are bounded by the callers; idle ones by `idleMax`, the oldest are closed first.
 *
 * @param options.ca certificates to trust instead of the system's, in PEM
 * @param options.idleMs after which an idle connection is closed
 */
export function createConnections(
  options: { ca?: string; idleMs?: number; idleMax?: number; world?: World } = {},
) {
  const { ca, idleMs = 30 * secondMs, idleMax = 200, world = systemWorld } = options
  const { timers } = world
  /** By key; the newest is last. */
  const idleByKey = new Map<string, Pooled[]>()
  /** The oldest is first. */
  const idle = new Set<Pooled>()
  /** TLS sessions by origin, the least recently stored first. */
  const sessions = new Map<string, Buffer>()
  let idleTimer: Timer | undefined

  function takeIdle(target: Target): Pooled | undefined {
    for (const { address } of target.addresses) {
      const pooled = idleByKey.get(keyOf(target, address))?.at(-1)
      if (!pooled) continue
      removeIdle(pooled)
      pooled.socket.ref()
      return pooled
    }
    return undefined
  }

  function removeIdle(pooled: Pooled) {
    if (!idle.delete(pooled) || pooled.key === undefined) return
    const sameKey = idleByKey.get(pooled.key) ?? []
    sameKey.splice(sameKey.lastIndexOf(pooled), 1)
    if (sameKey.length === 0) idleByKey.delete(pooled.key)
  }

  function addIdle(pooled: Pooled) {
    if (pooled.key === undefined || pooled.socket.destroyed || pooled.socket.writableLength > 0) {
      pooled.socket.destroy()
      return
    }
    pooled.idleSince = world.monotonic()
    pooled.socket.unref()
    idle.add(pooled)
    const sameKey = idleByKey.get(pooled.key)
    if (sameKey) sameKey.push(pooled)
    else idleByKey.set(pooled.key, [pooled])
    if (idle.size > idleMax) closeOldest()
    idleTimer ??= timers.setTimeout(closeExpired, idleMs).unref()
  }

  function closeOldest() {
    const [oldest] = idle
    if (!oldest) return
    removeIdle(oldest)
    oldest.socket.destroy()
  }

  function closeExpired() {
    idleTimer = undefined
    const now = world.monotonic()
    for (const { idleSince } of idle) {
      const leftMs = idleSince + idleMs - now
      if (leftMs > 0) {
        idleTimer = timers.setTimeout(closeExpired, leftMs).unref()
        return
      }
      closeOldest()
    }
  }

  function connect(target: Target): Pooled {
    const socket = openSocket(target)
    let phase: ReturnType<Connection['phase']> = 'connect'
    const pooled: Pooled = {
      socket,
      key: undefined,
      user: undefined,
      idleSince: 0,
      phase: () => phase,
      write: (bytes) => void socket.write(bytes),
      destroy() {
        pooled.user = undefined
        socket.destroy()
      },
      release() {
        pooled.user = undefined
        addIdle(pooled)
      },
    }
    socket.setNoDelay(true)
    if (target.isSecure) socket.once('connect', () => (phase = 'tls'))
    socket.once(target.isSecure ? 'secureConnect' : 'connect', () => {
      phase = 'open'
      const { remoteAddress } = socket
      const checked = target.addresses.find(({ address }) => isSameAddress(address, remoteAddress))
      if (checked) pooled.key = keyOf(target, checked.address)
      pooled.user?.onOpen()
    })
    socket.on('data', (bytes: Buffer) => {
      // Nothing was asked: it could be taken for the response to the next request.
      if (pooled.user) pooled.user.onData(bytes)
      else end()
    })
    const end = () => {
      removeIdle(pooled)
      const { user } = pooled
      pooled.user = undefined
      socket.destroy()
      user?.onEnd()
    }
    socket.on('error', end)
    socket.on('end', end)
    socket.on('close', end)
    return pooled
  }

  function openSocket({ isSecure, host, port, addresses }: Target): net.Socket {
    const lookup: net.LookupFunction = (_host, { all }, callback) => {
      const [first] = addresses
      if (all || !first) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    }
    const to = {
      host,
      port,
      // The checked addresses, never the result of a second lookup. Not called if `host` is an IP address.
      lookup,
    }
    if (!isSecure) return world.connect(to)
    const origin = `${host}:${port}`
    const session = sessions.get(origin)
    const socket = world.connect({
      ...to,
      tls: {
        // Not the environment decides whether certificates are verified.
        rejectUnauthorized: true,
        ...(!ipaddr.isValid(host) && { servername: host }),
        ...(ca !== undefined && { ca }),
        ...(session && { session }),
      },
    })
    socket.on('session', (newSession) => {
      sessions.delete(origin)
      sessions.set(origin, newSession)
      const [oldest] = sessions.keys()
      if (sessions.size > sessionsMax && oldest !== undefined) sessions.delete(oldest)
    })
    return socket
  }

  return {
    /**
     * Returns a connection to the target: an idle one, or a new one, for which `user.onOpen` is called once it is open.
     *
     * @param isFresh never an idle one
     */
    acquire(
      target: Target,
      user: ConnectionUser,
      isFresh: boolean,
    ): { connection: Connection; isReused: boolean } {
      const reused = isFresh ? undefined : takeIdle(target)
      const connection = reused ?? connect(target)
      connection.user = user
      return { connection, isReused: reused !== undefined }
    },

    /** Number of idle connections. */
    idleCount: () => idle.size,

    /** Closes all idle connections. */
    closeIdle() {
      timers.clearTimeout(idleTimer)
      idleTimer = undefined
      while (idle.size > 0) closeOldest()
    },
  }
}

const sessionsMax = 200

const keyOf = ({ isSecure, host, port }: Target, address: string) =>
  `${isSecure ? 'https' : 'http'}://${host}:${port} ${address}`

/** Compares in the canonical form: `::1` and `0:0:0:0:0:0:0:1` are the same. */
function isSameAddress(address: string, other: string | undefined): boolean {
  if (address === other) return true
  if (other === undefined || !ipaddr.isValid(address) || !ipaddr.isValid(other)) return false
  return ipaddr.process(address).toString() === ipaddr.process(other).toString()
}
