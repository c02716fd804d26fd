import type { Client } from '../domain/accounts/audit.ts'
import { rateLimitNetwork, type ReadClientAddress } from './client-address.ts'

/** What a handler of the framework knows of its call. */
export type IncomingRequest = {
  request: Request
  server: { requestIP(request: Request): { address: string } | null } | null
  set: { headers: Record<string, unknown> }
}

/** Tells where a call comes from: for limits, and for the audit trail. */
export type ReadClient = (incoming: IncomingRequest) => Client

export const createClientReader =
  (readAddress: ReadClientAddress): ReadClient =>
  ({ request, server, set }) => {
    const address = readAddress(request, server?.requestIP(request)?.address)
    const traceId = set.headers['x-request-id']
    return {
      network: rateLimitNetwork(address),
      origin: {
        source: 'api',
        ip: address === '' ? null : address,
        userAgent: request.headers.get('user-agent'),
        traceId: typeof traceId === 'string' ? traceId : null,
      },
    }
  }
