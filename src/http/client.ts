import type { Client } from '../domain/accounts/audit.ts'
import { rateLimitNetwork, type ReadClientAddress } from './client-address.ts'

/** The parts of the framework's context that identify the client. */
export type IncomingRequest = {
  request: Request
  server: { requestIP(request: Request): { address: string } | null } | null
  set: { headers: Record<string, unknown> }
}

/** Identifies the client of a request, for rate limits and for the audit trail. */
export type ReadClient = (incoming: IncomingRequest) => Client

/** Creates a reader that derives network and audit origin from the client's address. */
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
