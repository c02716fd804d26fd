import { startCarrierServer } from './carrier-server.ts'

/**
 * Vonage Verify v2 by the types and data sets of vonage-node-sdk (`babd2d8c`, July 2026). A phone has one request at a time.
 *
 * Not in the documents: how long a request cannot be canceled (`lockCancel`), and that `request_id` of a conflict is the pending request.
 */
export function startVonageVerify() {
  const requests = new Map<string, { to: string; code: string; status: string }>()
  const rules = { lockCancel: false }
  const problem = (status: number, name: string, fields: object = {}) =>
    Response.json(
      {
        type: `https://www.developer.vonage.com/api-errors/verify#${name}`,
        title: name,
        detail: 'no',
        instance: '738f9313-418a-4259-9b0d-6670f06fa82d',
        ...fields,
      },
      { status },
    )

  const server = startCarrierServer(({ method, path, body, headers }, mode, messages) => {
    if (mode === 'unauthorized' || headers['authorization'] !== `Basic ${btoa('abcd1234:secret')}`)
      return problem(401, 'unauthorized')
    const [, , , id] = path.split('/')
    if (method === 'GET') return Response.json({ page: 1, _embedded: { templates: [] } })
    if (id !== undefined) {
      const found = requests.get(id)
      if (found?.status !== 'pending') return problem(404, 'not-found')
      if (method === 'DELETE') {
        if (rules.lockCancel) return problem(409, 'conflict')
        found.status = 'canceled'
        return new Response(null, { status: 204 })
      }
      const { code }: { code: string } = JSON.parse(body)
      if (code !== found.code) return problem(400, 'invalid-code')
      found.status = 'completed'
      return Response.json({ request_id: id, status: 'completed' })
    }
    if (mode === 'throttle') return problem(429, 'throttled')
    if (mode === 'refuse') return problem(402, 'low-balance')
    const input: { code: string; workflow: Array<{ channel: string; to: string }> } = JSON.parse(body)
    const [step = { channel: '', to: '' }] = input.workflow
    if (!/^[1-9]\d{6,14}$/.test(step.to))
      return problem(422, 'invalid-params', {
        invalid_parameters: [{ name: 'workflow[0].to', reason: 'no' }],
      })
    const other = [...requests].find(([, one]) => one.to === step.to && one.status === 'pending')
    if (other) return problem(409, 'conflict', { request_id: other[0] })
    const messageId = crypto.randomUUID()
    requests.set(messageId, { to: step.to, code: input.code, status: 'pending' })
    messages.push({ to: `+${step.to}`, code: input.code, channel: step.channel, messageId })
    return Response.json({ request_id: messageId }, { status: 202 })
  })
  return { ...server, requests, rules }
}
