import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  createCaller,
  listReadCalls,
  nextPage,
  type Caller,
  type ReadCall,
  type RecordedResponse,
} from './calls.ts'
import { createProcessClock, type ProcessClock } from '../helpers/process-clock.ts'
import { listDifferences, maskLater } from './comparison.ts'
import { writeDatabase, type Fixture } from './fixture.ts'
import { poll, requestTokens } from './http.ts'
import { awaitQuiet } from './quiet.ts'
import { startInstance, type Instance } from './instance.ts'
import { textAt, valueAt, type Json } from './json.ts'
import type { Receivers } from './receivers.ts'
import { applicationHeaders, dayMs } from './world.ts'

type Facts = Omit<Fixture, 'answers' | 'later' | 'commands'>

type Needs = {
  binary: string
  /** Each recording gets a folder of its own below this one. */
  folder: string
  receivers: Receivers
  database: Uint8Array
  facts: Facts
}

/** Operator commands whose output depends only on the database. */
const commands = [
  ['admin', 'list', '--json'],
  ['guard', 'status', '--json'],
]

/**
 * Records the responses of a release on a database: once at the end of the scenario, and once on the real clock.
 *
 * @throws Error if the latter are not final: ten years later they must be the same
 */
export async function recordResponses(
  needs: Needs,
): Promise<Pick<Fixture, 'answers' | 'later' | 'commands'>> {
  const { facts, folder } = needs
  const atEnd = await withInstance(
    needs,
    'at-end',
    createProcessClock(folder, facts.endedAt),
    async (instance) => {
      const caller = createCaller(instance.url, heldCredentials(facts))
      const calls = await listReadCalls(instance.url, caller, Object.keys(facts.accounts))
      const outputs = []
      for (const args of commands) outputs.push({ args, data: await readCommand(instance, args) })
      return { calls, answers: await callAll(calls, caller), outputs }
    },
  )
  const recordLater = (name: string, clock?: ProcessClock) =>
    withInstance(needs, name, clock, async (instance) => {
      return callAllLater(instance, facts, atEnd.calls)
    })
  const later = await recordLater('later')
  const muchLater = await recordLater('much-later', createProcessClock(folder, Date.now() + 3650 * dayMs))
  for (const [n, response] of later.entries()) {
    const differences = listDifferences(response, muchLater[n] ?? response)
    if (differences.length > 0)
      throw new Error(`GET ${response.path} is not final: ${differences.join('; ')}`)
  }
  const isNew = (response: RecordedResponse, n: number) =>
    listDifferences(atEnd.answers[n] ?? response, response).length > 0
  return { answers: atEnd.answers, later: later.filter(isNew), commands: atEnd.outputs }
}

async function withInstance<T>(
  { binary, folder, receivers, database }: Needs,
  name: string,
  clock: ProcessClock | undefined,
  work: (instance: Instance) => Promise<T>,
): Promise<T> {
  const own = join(folder, name)
  mkdirSync(own)
  writeDatabase(own, database)
  const { gatewayUrl } = receivers
  const env = clock?.env ?? {}
  const instance = await startInstance({ binary, folder: own, gatewayUrl, env })
  try {
    return await work(instance)
  } finally {
    await instance.stop()
    clock?.close()
  }
}

/** Returns the headers of each caller, with the ID tokens that were issued at the end of the scenario. */
export const heldCredentials = (facts: Facts): Record<string, Record<string, string>> => ({
  ...Object.fromEntries(Object.entries(facts.open.idTokens).map(([name, token]) => [name, bearer(token)])),
  ...Object.fromEntries(
    Object.entries(facts.applications).map(([name, application]) => [name, applicationHeaders(application)]),
  ),
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Logs in to every account with its password. @returns the headers of each */
export async function logInAll(url: string, { accounts }: Pick<Facts, 'accounts'>) {
  const headers: Record<string, Record<string, string>> = {}
  for (const [name, { email: username, password }] of Object.entries(accounts)) {
    const { body } = await requestTokens(url, { grant_type: 'password', username, password })
    headers[name] = bearer(textAt(body, 'id_token'))
  }
  return headers
}

/**
 * Makes the calls long after the fixture was made: logs in, waits until open requests have expired, and masks
 * fields that depend on the date. Webhooks to this machine are refused, so that pending deliveries end in a known way.
 */
export async function callAllLater(
  instance: Instance,
  facts: Facts,
  calls: readonly ReadCall[],
): Promise<RecordedResponse[]> {
  const caller = createCaller(instance.url, {
    ...heldCredentials(facts),
    ...(await logInAll(instance.url, facts)),
  })
  const read = async (path: string) => (await caller({ as: 'ada', path })).body
  await poll(
    () => read('/v1/logs?limit=200'),
    (log) => hasExpired(log, facts),
    'open requests have expired',
    // A developer may make a limited number of calls a minute, and the calls below need most of them.
    { timeoutMs: 60_000, everyMs: 1000 },
  )
  await awaitQuiet(read)
  const answers = await callAll(calls, caller)
  return answers.map((response) => ({ ...response, body: maskLater(response.body, facts.endedAt) }))
}

function hasExpired(log: Json, { open }: Facts): boolean {
  const { pendingLive, pendingTest, almostExhausted, resentThrice, locked, idempotent } = open
  const requests = [pendingLive, pendingTest, almostExhausted, resentThrice, locked, idempotent.sent]
  const entries = valueAt(log, 'data')
  const isExpired = (id: string) =>
    Array.isArray(entries) &&
    entries.some((entry) => valueAt(entry, 'type') === 'otp.expired' && valueAt(entry, 'requestId') === id)
  return requests.every(({ id }) => isExpired(id))
}

/**
 * Makes the calls in order. A further page is called with the cursor of the page before, as that comes now: cursors last
 * only as long as the release, since those of 0.1.0 showed the position.
 */
export async function callAll(calls: readonly ReadCall[], caller: Caller): Promise<RecordedResponse[]> {
  const answers: RecordedResponse[] = []
  for (const call of calls) {
    const [firstPage = '', cursor] = call.path.split('&cursor=')
    const path = cursor === undefined ? call.path : await nextPage(call.as, firstPage, caller)
    answers.push({ ...call, ...(await caller({ ...call, path })) })
  }
  return answers
}

/** Returns `data` of the JSON that a command prints. @throws Error if it fails */
export async function readCommand(instance: Pick<Instance, 'run'>, args: string[]): Promise<Json> {
  const { exitCode, stdout, stderr } = await instance.run(args)
  if (exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${exitCode} ${stderr}`)
  return valueAt(JSON.parse(stdout) as Json, 'data')
}
