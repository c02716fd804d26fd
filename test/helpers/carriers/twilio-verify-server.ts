import { startCarrierServer } from './carrier-server.ts'

/**
 * Twilio Verify v2 by `spec/json/twilio_verify_v2.json` of twilio-oai (`d50069b4`, April 2026) and the pages of its error codes. While
 * a verification of a phone is pending, another one to it has the same SID and one more entry in `send_code_attempts`.
 *
 * Not in the documents: the code of a second message with another `CustomCode`. This server sends it, as it would a first one.
 */
export function startTwilioVerify() {
  const service = { friendly_name: 'Acme', custom_code_enabled: true }
  const verifications = new Map<string, { sid: string; to: string; status: string; attempts: number }>()
  const error = (status: number, code: number, message = 'no') =>
    Response.json(
      { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status },
      { status },
    )

  const server = startCarrierServer(({ method, path, body, headers }, mode, messages) => {
    const form = new URLSearchParams(body)
    if (mode === 'unauthorized' || !headers['authorization']?.startsWith('Basic '))
      return error(401, 20003, 'Authenticate')
    const [, , , serviceSid, resource, sid] = path.split('/')
    if (serviceSid !== verifyServiceSid) return error(404, 20404, 'The requested resource was not found')
    if (method === 'GET' && resource === undefined)
      return Response.json({ sid: serviceSid, code_length: 6, ...service })
    if (sid !== undefined) {
      const found = verifications.get(sid)
      if (found?.status !== 'pending') return error(404, 20404, 'The requested resource was not found')
      found.status = form.get('Status') ?? ''
      return Response.json(present(found))
    }
    if (mode === 'throttle') return error(429, 60207, 'Max rate limits per service reached')
    if (mode === 'block')
      return error(403, 60410, 'The destination phone number has been temporarily blocked')
    if (mode === 'refuse') return error(403, 60605, 'The destination phone number has been blocked')
    if (!service.custom_code_enabled) return error(403, 60204, 'Service does not support this feature')
    // The page on supported languages, of a locale that it lacks; the API description has it fall back to English.
    if (form.get('Locale') === 'sw') return error(404, 20404, 'The requested resource was not found')
    const to = form.get('To') ?? ''
    if (!/^\+[1-9]\d{6,14}$/.test(to)) return error(400, 60200, `Invalid parameter \`To\`: ${to}`)
    const pending = [...verifications.values()].find((one) => one.to === to && one.status === 'pending')
    if (pending && pending.attempts >= 5) return error(429, 60203, 'Max send attempts reached')
    const verification = pending ?? {
      sid: `VE${crypto.randomUUID().replaceAll('-', '')}`,
      to,
      status: 'pending',
      attempts: 0,
    }
    verification.attempts++
    verifications.set(verification.sid, verification)
    messages.push({
      to,
      code: form.get('CustomCode') ?? '',
      channel: form.get('Channel') ?? '',
      messageId: verification.sid,
    })
    return Response.json(present(verification), { status: 201 })
  })

  const present = ({
    sid,
    to,
    status,
    attempts,
  }: {
    sid: string
    to: string
    status: string
    attempts: number
  }) => ({
    sid,
    service_sid: verifyServiceSid,
    to,
    channel: 'sms',
    status,
    valid: status === 'approved',
    send_code_attempts: Array.from({ length: attempts }, () => ({ channel: 'SMS' })),
  })
  return { ...server, service, verifications }
}

export const verifyServiceSid = `VA${'0b'.repeat(16)}`
