import { BlockList, isIPv4, isIPv6 } from 'node:net'
import type { Client } from '../domain/model/audit.ts'
import { networkOf } from '../domain/model/network.ts'

/** The parts of the framework's context that identify the client. */
export type ClientContext = {
  request: Request
  server: { requestIP(request: Request): { address: string } | null } | null
  set: { headers: Record<string, unknown> }
}

/** Identifies the client of a request, for rate limits and for the audit trail. */
export type ReadClient = (incoming: ClientContext) => Client

/** Creates a reader that derives network and audit origin from the client's address. */
export const createClientReader =
  (readAddress: ReadClientAddress): ReadClient =>
  ({ request, server, set }) => {
    const address = readAddress(request, server?.requestIP(request)?.address)
    return {
      // Most calls do not need it. A link-local peer has a zone, which is no part of its network.
      get network() {
        return networkOf(address.replace(/%.*$/, '')) ?? address
      },
      origin: {
        source: 'api',
        ip: address === '' ? null : address,
        userAgent: request.headers.get('user-agent'),
        traceId: readTraceId(request, set.headers),
        tokenId: null,
      },
    }
  }

/** Reads the IP address of the client; an empty string if there is none. */
type ReadClientAddress = (request: Request, peer: string | undefined) => string

/**
 * Finds the client behind trusted proxies. `X-Forwarded-For` is read from the right, as far as trusted proxies wrote
 * it; the client may have forged the rest.
 *
 * @param trustedProxies CIDRs or addresses
 */
export function createClientAddressReader(trustedProxies: readonly string[]): ReadClientAddress {
  if (trustedProxies.length === 0) return (_request, peer) => unmapIpv4(peer ?? '')
  // One list per family: in its mapped form, an IPv4 address would match IPv6 rules.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const cidr of trustedProxies) {
    const [address = '', prefix] = cidr.split('/')
    const family = addressFamily(address)
    if (!family) throw new TypeError('a trusted proxy is not an address')
    lists[family].addSubnet(address, Number(prefix ?? (family === 'ipv4' ? 32 : 128)), family)
  }
  const isTrusted = (address: string) => {
    const family = addressFamily(address)
    return family !== undefined && lists[family].check(address, family)
  }

  return (request, peer) => {
    let client = unmapIpv4(peer ?? '')
    if (!isTrusted(client)) return client
    const hops = (request.headers.get('x-forwarded-for') ?? '').split(',').map(readHop)
    for (const hop of hops.toReversed()) {
      if (!addressFamily(hop)) break
      client = hop
      if (!isTrusted(hop)) break
    }
    return client
  }
}

/** Reads the address of a hop. Azure's Application Gateway adds the client's port, others write IPv6 in brackets. */
function readHop(hop: string): string {
  const [, ipv6, ipv4] = /^(?:\[([^\]]+)\]|([^:]+))(?::\d{1,5})?$/.exec(hop.trim()) ?? []
  return unmapIpv4(ipv6 ?? ipv4 ?? hop.trim())
}

function addressFamily(address: string): 'ipv4' | 'ipv6' | undefined {
  if (isIPv4(address)) return 'ipv4'
  return isIPv6(address) ? 'ipv6' : undefined
}

/** Dual-stack sockets report IPv4 peers as ::ffff:a.b.c.d. */
const unmapIpv4 = (address: string) => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** W3C Trace Context of a caller: the header as it was sent, and its trace id. */
type TraceContext = { traceparent: string; traceId: string }

/** Version, trace id, parent id, flags; versions above 00 may append more. */
const traceparentPattern =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]*)?$/

/** Longest header that is passed on. */
const traceparentLengthMax = 128

/** Reads the `traceparent` header (W3C Trace Context §3.2). @returns undefined if it is missing or invalid */
export function readTrace(request: Request): TraceContext | undefined {
  const traceparent = request.headers.get('traceparent')
  if (traceparent === null || traceparent.length > traceparentLengthMax) return undefined
  const [, version, traceId, rest] = traceparentPattern.exec(traceparent) ?? []
  if (traceId === undefined || (version === '00' && rest !== undefined)) return undefined
  return { traceparent, traceId }
}

/**
 * Returns the id under which a request is found in logs, errors and the audit trail: the caller's trace id, or else our
 * own `X-Request-Id`.
 */
export const readTraceId = (request: Request, headers: Record<string, unknown>): string =>
  readTrace(request)?.traceId ?? String(headers['x-request-id'])
