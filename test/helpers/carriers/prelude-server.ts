import { startCarrierServer } from './carrier-server.ts'

/**
 * Prelude Verify v2 by prelude-python-sdk 0.16.0, which is generated from Prelude's OpenAPI document, and the page on errors. While a
 * verification of a phone is pending, another one is a retry of it.
 *
 * Not in the documents: the code of a retry with another `custom_code`. This server sends it.
 */
export function startPrelude() {
  const pending = new Map<string, { id: string; code: string }>()
  const block = { reason: 'suspicious' }
  const account = { hasCustomCodes: true }
  const error = (status: number, code: string) =>
    Response.json({ code, message: 'no', type: 'bad_request', request_id: 'r1' }, { status })

  const server = startCarrierServer(({ method, path, body, headers }, mode, messages) => {
    if (mode === 'unauthorized' || headers['authorization'] !== 'Bearer sk_1')
      return error(401, 'unauthorized')
    if (method === 'GET') return Response.json({ sender_ids: [] })
    const input: {
      target: { type: string; value: string }
      code?: string
      options?: { custom_code?: string; method?: string; preferred_channel?: string }
      metadata?: { correlation_id?: string }
    } = JSON.parse(body)
    const to = input.target.value
    if (path === '/v2/verification/check') {
      const found = pending.get(to)
      if (!found) return Response.json({ status: 'expired_or_not_found' })
      if (found.code !== input.code) return Response.json({ status: 'failure', id: found.id })
      pending.delete(to)
      return Response.json({ status: 'success', id: found.id })
    }
    if (mode === 'throttle') return error(429, 'rate_limited')
    if (mode === 'refuse') return error(400, 'channel_not_enabled_in_region')
    const { metadata, options = {} } = input
    if (mode === 'block')
      return Response.json({ id: 'vrf_b', method: 'message', status: 'blocked', ...block, metadata })
    if (!account.hasCustomCodes) return error(400, 'custom_code_not_allowed')
    const code = options.custom_code ?? ''
    const known = pending.get(to)
    const id = known?.id ?? `vrf_${messages.length}`
    pending.set(to, { id, code })
    const channel = options.method === 'voice' ? 'voice' : (options.preferred_channel ?? 'sms')
    messages.push({ to, code, channel, messageId: id })
    return Response.json({
      id,
      method: options.method,
      status: known ? 'retry' : 'success',
      channels: [channel],
      metadata,
    })
  })
  return { ...server, pending, block, account }
}
