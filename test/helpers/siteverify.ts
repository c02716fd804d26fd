type SiteverifyCall = { contentType: string | null; fields: Record<string, string> }

/** Secrets and site keys that the server knows. */
export const siteverifyKeys = { secret: 'the-secret', siteKey: 'site-1' }

/**
 * Starts a server that speaks the siteverify protocol of Turnstile and hCaptcha: a form with `secret` and `response`; each token
 * that it issued is right once.
 */
export function startSiteverify(kind: 'turnstile' | 'hcaptcha') {
  const tokens = new Map<string, { hostname: string; isUsed: boolean }>()
  const calls: SiteverifyCall[] = []
  let answer: ((call: SiteverifyCall) => Response | Promise<Response>) | undefined
  let issued = 0

  const refuse = (...codes: string[]) => Response.json({ success: false, 'error-codes': codes })

  function verify({ contentType, fields }: SiteverifyCall): Response {
    const { secret, response, sitekey } = fields
    if (contentType !== 'application/x-www-form-urlencoded') return refuse('bad-request')
    if (secret === undefined) return refuse('missing-input-secret')
    if (secret !== siteverifyKeys.secret) return refuse('invalid-input-secret')
    if (sitekey !== undefined && sitekey !== siteverifyKeys.siteKey) return refuse('sitekey-secret-mismatch')
    if (response === undefined) return refuse('missing-input-response')
    const token = tokens.get(response)
    if (!token) return refuse('invalid-input-response')
    if (token.isUsed) return refuse(kind === 'turnstile' ? 'timeout-or-duplicate' : 'already-seen-response')
    token.isUsed = true
    return Response.json({
      success: true,
      challenge_ts: '2026-11-24T12:00:00.000Z',
      hostname: token.hostname,
      ...(kind === 'turnstile' && { 'error-codes': [], action: '', cdata: '' }),
    })
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const call = {
        contentType: request.headers.get('content-type'),
        fields: Object.fromEntries(new URLSearchParams(await request.text())),
      }
      calls.push(call)
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      return answer ? answer(call) : verify(call)
    },
  })

  return {
    url: `http://127.0.0.1:${server.port}/siteverify`,
    calls,
    /** Issues a token, as the widget of a page does once its user passed. */
    issue(hostname = 'shop.example.com'): string {
      const token = `token-${++issued}`
      tokens.set(token, { hostname, isUsed: false })
      return token
    },
    /** Answers in another way until it is called without one. */
    answerWith(next?: typeof answer): void {
      answer = next
    },
    stop: () => server.stop(true),
  }
}
