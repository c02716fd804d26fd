import type { TestApp } from '../helpers/webhook-client.ts'
import { encodeCall, openConnection, type Connection, type HttpAnswer } from './connection.ts'
import type { Known, Ledger } from './ledger.ts'

export type LoadNeeds = {
  url: string
  apps: TestApp[]
  ledger: Ledger
  random: () => number
  connections: number
}

export type Load = ReturnType<typeof startLoad>

type Answered = { data?: Record<string, string>; error?: { code: string; metadata?: Record<string, string> } }

let phones = 0

/**
 * Callers that send codes, guess some of them wrong, verify most, and some again; each waits for its answer and writes
 * down what it was told. A caller ends with its connection.
 */
export function startLoad({ url, apps, ledger, random, connections }: LoadNeeds) {
  let stopped = false

  async function call(index: number) {
    const connection = await openConnection(url).catch(() => undefined)
    if (!connection) return
    const goesOn = () => !stopped && !connection.isClosed()
    while (goesOn()) {
      const again = ledger.unsure.pop()
      const known = again ?? (await send(connection, apps[(index + phones) % apps.length]))
      if (!known) continue
      const guesses = again ? 0 : wrongGuesses(random())
      for (let i = 0; i < guesses; i++) await guess(connection, known)
      if (again || (guesses < 5 && random() < 0.9)) await verify(connection, known)
      if (!again && random() < 0.05) await verify(connection, known)
    }
    connection.close()
  }

  async function send(connection: Connection, app: TestApp | undefined): Promise<Known | undefined> {
    if (!app) throw new Error('there is no application')
    const phone = `+1415${2_000_000 + (phones++ % 7_000_000)}`
    const answer = await connection.ask(encodeCall('POST', '/v1/otp/send', app.headers, { phone }))
    if (!answer) return undefined
    const { data } = parse(answer)
    if (answer.status === 201 && data?.['requestId'] && data['code']) {
      return ledger.sent(answer.id, data['requestId'], app, data['code'])
    }
    note(answer)
    return undefined
  }

  async function guess(connection: Connection, known: Known) {
    const wrong = String((Number(known.code) + 1) % 1_000_000).padStart(6, '0')
    const answer = await askToVerify(connection, known, wrong)
    const code = answer && parse(answer).error?.code
    if (answer && code === 'INVALID_CODE') ledger.wrong(answer.id, known)
    else if (answer?.status === 200) ledger.broken.push(`${known.id} was verified with a wrong code`)
    else {
      ledger.unanswered(known, false)
      if (answer) note(answer)
    }
  }

  async function verify(connection: Connection, known: Known) {
    const answer = await askToVerify(connection, known, known.code)
    const { data, error } = answer ? parse(answer) : {}
    if (answer?.status === 200) ledger.verified(answer.id, known, data?.['verifiedAt'] ?? '')
    else if (error?.code === 'ALREADY_VERIFIED')
      ledger.wasVerified(known, error.metadata?.['verifiedAt'] ?? '')
    // Used up, by the attempts of nobody knows how many that were counted.
    else if (error?.code === 'ATTEMPTS_EXHAUSTED' && known.wrong + known.unanswered >= 5) return
    else {
      ledger.unanswered(known, true)
      if (answer) note(answer)
    }
  }

  const askToVerify = (connection: Connection, { id, app }: Known, code: string) =>
    connection.ask(encodeCall('POST', '/v1/otp/verify', app.headers, { requestId: id, code }))

  function note(answer: HttpAnswer) {
    const kind = `${answer.status} ${parse(answer).error?.code ?? ''}`
    ledger.other(kind)
    if (answer.status !== 503) ledger.broken.push(`an answer that nothing explains: ${kind}`)
  }

  const callers = Promise.all(Array.from({ length: connections }, (_, index) => call(index)))
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

/** Most people type it right. */
const wrongGuesses = (chance: number) => (chance < 0.7 ? 0 : chance < 0.9 ? 1 : chance < 0.97 ? 2 : 5)

// Of a server of ours, whose answers are JSON of this shape.
const parse = ({ body }: HttpAnswer): Answered => JSON.parse(body) as Answered
