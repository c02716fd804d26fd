import { EventEmitter } from 'node:events'
import type http from 'node:http'
import type net from 'node:net'
import type { ConnectOptions, HttpRequestOptions } from '../../src/world/world.ts'
import type { Chance } from './chance.ts'
import type { Node } from './node.ts'
import type { Scheduler } from './scheduler.ts'

export type PeerRequest = { method: string; path: string; headers: Record<string, string>; body: string }
export type PeerResponse = { status: number; headers?: Record<string, string>; body?: string }

/** A program on the other side of the network. */
export type Peer = (request: PeerRequest) => PeerResponse

/** Shares of exchanges that go wrong. */
export type NetworkFaults = {
  /** The connection is refused. */
  refused: number
  /** It is reset after the request has arrived. */
  reset: number
  /** The peer never answers. */
  silent: number
  /** The request arrives twice. */
  twice: number
  /** The response takes seconds. */
  slow: number
}

export const noFaults: NetworkFaults = { refused: 0, reset: 0, silent: 0, twice: 0, slow: 0 }

export type Network = ReturnType<typeof createNetwork>

/** Creates the network between the server and its peers. */
export function createNetwork(scheduler: Scheduler, chance: Chance) {
  const peers = new Map<string, Peer>()
  let faults = noFaults

  const latency = () => chance.around(15)

  /** Plays one exchange. @param answer called with the response, or with undefined if the connection breaks */
  function exchange(
    node: Node,
    host: string,
    request: PeerRequest,
    answer: (response?: PeerResponse) => void,
  ) {
    const peer = peers.get(host)
    const [isReset, isSilent, isTwice] = [
      chance.happens(faults.reset),
      chance.happens(faults.silent),
      chance.happens(faults.twice),
    ]
    const tookMs =
      latency() + (chance.happens(faults.slow) ? chance.between(1_000, 20_000) : chance.around(30))
    scheduler.after(latency(), () => {
      const response = peer?.(request)
      if (isTwice) scheduler.after(latency(), () => void peer?.(request))
      if (isSilent) return
      node.after(tookMs, () => answer(isReset ? undefined : response))
    })
  }

  const isRefused = (host: string) => !peers.has(host) || chance.happens(faults.refused)

  return {
    addPeer: (host: string, peer: Peer) => void peers.set(host, peer),
    setFaults: (changed: NetworkFaults) => void (faults = changed),

    /** Sends an HTTP request as `node:http` does. */
    request(
      node: Node,
      url: string,
      { method = 'GET', headers = {} }: HttpRequestOptions,
    ): http.ClientRequest {
      const { host, pathname, search } = new URL(url)
      const request = new EventEmitter()
      const socket = new EventEmitter()
      let isDestroyed = false
      const emit = (emitter: EventEmitter, name: string, ...values: unknown[]) => {
        if (!isDestroyed) emitter.emit(name, ...values)
      }
      const error = (code: string) => emit(request, 'error', Object.assign(new Error(code), { code }))
      const end = (body: Uint8Array | undefined) => {
        node.after(0, () => emit(request, 'socket', socket))
        node.after(latency(), () => {
          if (isDestroyed) return
          if (isRefused(host)) return error('ECONNREFUSED')
          emit(socket, 'secureConnect')
          const text = Buffer.from(body ?? []).toString()
          const sent = {
            method,
            path: pathname + search,
            headers: headers as Record<string, string>,
            body: text,
          }
          exchange(node, host, sent, (response) => {
            if (!response) return error('ECONNRESET')
            const incoming = Object.assign(new EventEmitter(), {
              statusCode: response.status,
              headers: response.headers ?? {},
            })
            emit(request, 'response', incoming)
            emit(incoming, 'data', Buffer.from(response.body ?? ''))
            emit(incoming, 'end')
          })
        })
      }
      const destroy = () => void (isDestroyed = true)
      return Object.assign(request, { end, destroy, reusedSocket: false }) as unknown as http.ClientRequest
    },

    /** Opens a connection on which HTTP is spoken. */
    connect(node: Node, { host, port, lookup, tls }: ConnectOptions): net.Socket {
      const socket = new EventEmitter()
      let received = Buffer.alloc(0)
      const authority = port === (tls ? 443 : 80) ? host : `${host}:${port}`
      const state = {
        destroyed: false,
        writableLength: 0,
        remoteAddress: host,
        setNoDelay: () => state,
        ref: () => state,
        unref: () => state,
        destroy() {
          state.destroyed = true
          return state
        },
        write(bytes: Buffer) {
          received = Buffer.concat([received, bytes])
          readRequests()
          return true
        },
      }
      const emit = (name: string, ...values: unknown[]) => {
        if (!state.destroyed) socket.emit(name, ...values)
      }
      function readRequests() {
        const headEnd = received.indexOf('\r\n\r\n')
        if (headEnd < 0) return
        const [first = '', ...lines] = received.subarray(0, headEnd).toString().split('\r\n')
        const headers = Object.fromEntries(
          lines.map((line) => [
            line.slice(0, line.indexOf(':')).toLowerCase(),
            line.slice(line.indexOf(':') + 1).trim(),
          ]),
        )
        const length = Number(headers['content-length'] ?? 0)
        const body = received.subarray(headEnd + 4, headEnd + 4 + length).toString()
        received = received.subarray(headEnd + 4 + length)
        const [method = '', path = ''] = first.split(' ')
        exchange(node, authority, { method, path, headers, body }, (response) => {
          if (!response) return emit('close')
          const { status, body: text = '' } = response
          emit(
            'data',
            Buffer.from(`HTTP/1.1 ${status} x\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`),
          )
        })
      }
      lookup?.(host, { all: false }, (_error, address) => {
        if (typeof address === 'string') state.remoteAddress = address
      })
      node.after(latency(), () => {
        if (isRefused(authority))
          return emit('error', Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
        emit('connect')
        if (tls) node.after(latency(), () => emit('secureConnect'))
      })
      return new Proxy(socket, {
        get: (target, name) => Reflect.get(name in state ? state : target, name) as unknown,
      }) as unknown as net.Socket
    },
  }
}
