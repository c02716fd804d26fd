import { startCarrierServer } from './carrier-server.ts'

/**
 * SMS Gateway for Android by its source (`MessagesRoutes.kt`, `PostMessageRequest.kt`, `WebService.kt`) and its `swagger.json`, at
 * `0cdc5d86` (July 2026): Basic authentication, exactly one content, at least one phone, and `ttl` in seconds.
 */
export const startSmsGate = (user: string, password: string) =>
  startCarrierServer(({ method, path, body, headers }, mode, messages) => {
    const refuse = (status: number, message: string) => Response.json({ message }, { status })
    if (
      mode === 'unauthorized' ||
      headers['authorization'] !== `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    )
      return new Response(null, { status: 401 })
    if (method !== 'POST' || path !== '/messages') return refuse(404, 'not found')
    const input: {
      message?: string
      textMessage?: { text?: string }
      dataMessage?: object
      phoneNumbers?: string[]
      ttl?: number
      validUntil?: string
      priority?: number
    } = JSON.parse(body)
    const contents = [input.message, input.textMessage, input.dataMessage].filter((one) => one !== undefined)
    if (contents.length !== 1)
      return refuse(400, 'Must specify exactly one of: textMessage, dataMessage, or message')
    if (!input.textMessage?.text) return refuse(400, 'Text message is empty')
    const [to] = input.phoneNumbers ?? []
    if (to === undefined) return refuse(400, 'Empty phone numbers list')
    if (typeof input.ttl !== 'number' || input.ttl <= 0) return refuse(400, 'message already expired')
    if (mode === 'throttle') return refuse(503, 'Queue limits exceeded')
    if (mode === 'refuse') return refuse(500, 'Failed to enqueue')
    const messageId = crypto.randomUUID()
    messages.push({ to, code: /\d{6}/.exec(input.textMessage.text)?.[0] ?? '', channel: 'sms', messageId })
    const state = {
      id: messageId,
      deviceId: 'd1',
      state: 'Pending',
      recipients: [{ phoneNumber: to, state: 'Pending' }],
    }
    return Response.json(state, { status: 202 })
  })
