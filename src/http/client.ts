import type { Client } from '../domain/accounts/audit.ts'
import { networkOf, type ClientAddress } from './client-address.ts'

/** What a handler of the framework knows of its call. */
export type IncomingCall = {
  request: Request
  server: { requestIP(request: Request): { address: string } | null } | null
  set: { headers: Record<string, unknown> }
}

/** Tells where a call comes from: for limits, and for the audit trail. */
export type ClientOf = (call: IncomingCall) => Client

export const createClientOf =
  (addressOf: ClientAddress): ClientOf =>
  ({ request, server, set }) => {
    const address = addressOf(request, server?.requestIP(request)?.address)
    const traceId = set.headers['x-request-id']
    return {
      network: networkOf(address),
      origin: {
        source: 'api',
        ip: address === '' ? null : address,
        userAgent: request.headers.get('user-agent'),
        traceId: typeof traceId === 'string' ? traceId : null,
      },
    }
  }
