import { startCarrierServer } from './carrier-server.ts'

export const verifyProfileId = '49000192-1bdb-c56f-3de7-e008ef6da16b'

/**
 * Telnyx Verify v2 by the API's types in telnyx-node (`b9b12ca7`, August 2026) and its error list. Every message is a verification of its
 * own.
 *
 * Not in the documents: the codes of refusals by `whitelisted_destinations` and `daily_spend_limit`, and how a fraud block is answered.
 */
export function startTelnyxVerify() {
  const outcomes = new Map<string, string>()
  const error = (status: number, code: string, title: string, detail = title) =>
    Response.json({ errors: [{ code, title, detail }] }, { status })

  const server = startCarrierServer(({ method, path, body, headers }, mode, messages) => {
    if (mode === 'unauthorized' || headers['authorization'] !== 'Bearer KEY123')
      return error(401, '10009', 'Authentication failed')
    if (method === 'GET')
      return path === `/v2/verify_profiles/${verifyProfileId}`
        ? Response.json({
            data: {
              id: verifyProfileId,
              name: 'Acme',
              daily_spend_limit: 25,
              daily_spend_limit_enabled: true,
              sms: { app_name: 'Acme Shop', whitelisted_destinations: ['NL', 'DE'] },
            },
          })
        : error(404, '10005', 'Resource not found')
    const input: Record<string, string> = JSON.parse(body)
    const [, , , resource = '', actions] = path.split('/')
    if (actions === 'actions') {
      const message = messages.find(({ messageId }) => messageId === resource)
      if (!message || outcomes.has(resource)) return error(404, '10005', 'Resource not found')
      outcomes.set(resource, input['status'] ?? '')
      return Response.json({ data: { phone_number: message.to, response_code: input['status'] } })
    }
    if (mode === 'throttle') return error(429, '10011', 'Too many requests')
    if (mode === 'block') return error(403, '10010', 'Authorization failed', 'Suspected fraud on this range')
    if (mode === 'refuse')
      return error(400, '10015', 'Bad Request', 'NL is not among the whitelisted destinations')
    const messageId = crypto.randomUUID()
    messages.push({
      to: input['phone_number'] ?? '',
      code: input['custom_code'] ?? '',
      channel: resource,
      messageId,
    })
    return Response.json({
      data: { id: messageId, ...input, record_type: 'verification', status: 'pending' },
    })
  })
  return { ...server, outcomes }
}
