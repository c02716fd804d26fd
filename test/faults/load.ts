import type { TestApp } from '../helpers/webhook-client.ts'
import { encodeRequest, openConnection, type Connection, type HttpResponse } from './connection.ts'
import type { TrackedRequest, Ledger } from './ledger.ts'

export type LoadOptions = {
  url: string
  apps: TestApp[]
  ledger: Ledger
  random: () => number
  connections: number
}

export type Load = ReturnType<typeof startLoad>

type ResponseBody = {
  data?: Record<string, string>
  error?: { code: string; metadata?: Record<string, string> }
}

let phones = 0

/**
 * Starts callers that send codes, make wrong guesses, verify most codes, and verify some again. Each waits for its
 * response and records it in the ledger. A caller ends with its connection.
 */
export function startLoad({ url, apps, ledger, random, connections }: LoadOptions) {
  let stopped = false

  async function runCaller(index: number) {
    const connection = await openConnection(url).catch(() => undefined)
    if (!connection) return
    const shouldContinue = () => !stopped && !connection.isClosed()
    while (shouldContinue()) {
      const unconfirmed = ledger.unconfirmed.pop()
      const tracked = unconfirmed ?? (await send(connection, apps[(index + phones) % apps.length]))
      if (!tracked) continue
      const wrongGuessCount = unconfirmed ? 0 : chooseWrongGuesses(random())
      for (let i = 0; i < wrongGuessCount; i++) await guess(connection, tracked)
      if (unconfirmed || (wrongGuessCount < 5 && random() < 0.9)) await verify(connection, tracked)
      if (!unconfirmed && random() < 0.05) await verify(connection, tracked)
    }
    connection.close()
  }

  async function send(connection: Connection, app: TestApp | undefined): Promise<TrackedRequest | undefined> {
    if (!app) throw new Error('there is no application')
    const phone = `+1415${2_000_000 + (phones++ % 7_000_000)}`
    const response = await connection.send(encodeRequest('POST', '/v1/otp/send', app.headers, { phone }))
    if (!response) return undefined
    const { data } = parseBody(response)
    if (response.status === 201 && data?.['requestId'] && data['code']) {
      return ledger.sent(response.id, data['requestId'], app, data['code'])
    }
    recordUnexpected(response)
    return undefined
  }

  async function guess(connection: Connection, tracked: TrackedRequest) {
    const wrong = String((Number(tracked.code) + 1) % 1_000_000).padStart(6, '0')
    const response = await askToVerify(connection, tracked, wrong)
    const code = response && parseBody(response).error?.code
    if (response && code === 'INVALID_CODE') ledger.wrong(response.id, tracked)
    else if (response?.status === 200) ledger.violations.push(`${tracked.id} was verified with a wrong code`)
    else {
      ledger.unanswered(tracked, false)
      if (response) recordUnexpected(response)
    }
  }

  async function verify(connection: Connection, tracked: TrackedRequest) {
    const response = await askToVerify(connection, tracked, tracked.code)
    const { data, error } = response ? parseBody(response) : {}
    if (response?.status === 200) ledger.verified(response.id, tracked, data?.['verifiedAt'] ?? '')
    else if (error?.code === 'ALREADY_VERIFIED')
      ledger.alreadyVerified(tracked, error.metadata?.['verifiedAt'] ?? '')
    // Exhausted, given that each unanswered attempt may have been counted.
    else if (error?.code === 'ATTEMPTS_EXHAUSTED' && tracked.wrong + tracked.unanswered >= 5) return
    else {
      ledger.unanswered(tracked, true)
      if (response) recordUnexpected(response)
    }
  }

  const askToVerify = (connection: Connection, { id, app }: TrackedRequest, code: string) =>
    connection.send(encodeRequest('POST', '/v1/otp/verify', app.headers, { requestId: id, code }))

  function recordUnexpected(response: HttpResponse) {
    const kind = `${response.status} ${parseBody(response).error?.code ?? ''}`
    ledger.unexpected(kind)
    if (response.status !== 503) ledger.violations.push(`unexplained response: ${kind}`)
  }

  const callers = Promise.all(Array.from({ length: connections }, (_, index) => runCaller(index)))
  return {
    /** Resolves when every caller has ended. */
    ended: callers,
    /** Lets every caller finish what it began. */
    async stop() {
      stopped = true
      await callers
    },
  }
}

/** Chooses the number of wrong guesses. Most people make none. */
const chooseWrongGuesses = (chance: number) => (chance < 0.7 ? 0 : chance < 0.9 ? 1 : chance < 0.97 ? 2 : 5)

// The server under test answers with JSON of this shape.
const parseBody = ({ body }: HttpResponse): ResponseBody => JSON.parse(body) as ResponseBody
