import type { TestApp } from '../../helpers/webhook-client.ts'
import { callApi, waitUntil, type CallResult } from '../calls.ts'
import type { Vendor } from './vendor.ts'

/** Countries of the people, by the first digits of their numbers. */
const prefixes = ['+31612', '+4915112', '+14152'] as const

const arrivalMsMax = 1_500
const answerMsMax = 120_000

type Person = { phone: string; requestId: string }

/**
 * People who ask for codes, enter, cancel or ignore them, and ask again if none has come.
 *
 * @param nodeUrl the node that the next call goes to; a call without an answer is repeated
 */
export function createPeople(
  app: TestApp,
  vendors: readonly Vendor[],
  random: () => number,
  nodeUrl: () => string,
) {
  const violations: string[] = []
  let count = 0
  let waiting: Person[] = []

  async function post(path: string, body: object): Promise<CallResult> {
    const headers = { ...app.headers, 'idempotency-key': crypto.randomUUID() }
    const startedAt = performance.now()
    for (;;) {
      const answer = await callApi('POST', `${nodeUrl()}/v1/otp/${path}`, { headers, body })
      const isAnswered = ![0, 503].includes(answer.status)
      if (isAnswered || performance.now() - startedAt > answerMsMax) return answer
      await Bun.sleep(50)
    }
  }

  /** Waits for a code on a phone. @returns the newest that arrived; undefined if none came in time */
  async function waitForCode(phone: string): Promise<string | undefined> {
    const find = () => vendors.flatMap(({ arrivedCodes }) => arrivedCodes.get(phone) ?? []).at(-1)
    await waitUntil(arrivalMsMax, () => find() !== undefined)
    return find()
  }

  async function ask(): Promise<void> {
    const prefix = prefixes[count % prefixes.length] ?? ''
    const phone = `${prefix}${String(count++).padStart(6, '0')}`
    const { status, data } = await post('send', { phone })
    // Every vendor refused, or a killed node has left the key without an answer.
    if (status === 502 || status === 409) return
    if (status !== 201) return void violations.push(`a send was answered ${status}`)
    await act({ phone, requestId: String(data['requestId']) })
  }

  async function act(person: Person): Promise<void> {
    const { phone, requestId } = person
    const code = await waitForCode(phone)
    const choice = random()
    if (code === undefined) {
      if (choice < 0.6) waiting.push(person)
      return
    }
    if (choice < 0.8) {
      const { status } = await post('verify', { requestId, code })
      // 409: an earlier try without an answer has verified it; 404 and 410: it ended meanwhile.
      if (![200, 409, 410].includes(status)) violations.push(`a right code was answered ${status}`)
    } else if (choice < 0.87) await post('cancel', { requestId })
    else if (choice < 0.92)
      for (let wrong = 0; wrong < 5; wrong++)
        await post('verify', { requestId, code: code === '000000' ? '111111' : '000000' })
  }

  return {
    violations,
    /** Lets so many people ask for a code at once. */
    ask: (people: number) => Promise.all(Array.from({ length: people }, ask)),
    /** Lets those to whom none has come ask for another message. */
    async askAgain(): Promise<void> {
      const again = waiting
      waiting = []
      await Promise.all(
        again.map(async (person) => {
          const { status } = await post('resend', { requestId: person.requestId })
          if (status === 200) await act(person)
        }),
      )
    },
  }
}
