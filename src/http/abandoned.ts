import type { Timers } from '../world/world.ts'
/** Methods that change nothing (RFC 9110 §9.2.1). */
export const isSafeMethod = (method: string) => method === 'GET' || method === 'HEAD'

/**
 * Ends a request, before it changes anything, whose client can no longer get the response. Bun closes a connection on
 * which a pipelined request arrives while the response to the one before is pending: without this check, a request with
 * another one right behind it would be executed and never be answered.
 *
 * @returns the response that ends it, with the status that nginx logs for this; undefined to go on
 */
export async function endIfAbandoned(request: Request, { nextTurn }: Timers): Promise<Response | undefined> {
  if (isSafeMethod(request.method)) return undefined
  // Bun parses everything that has arrived on the connection before the next turn of the event loop.
  await nextTurn()
  return request.signal.aborted ? new Response(null, { status: 499 }) : undefined
}
