import { runBinary, type RunningServer } from '../helpers/binary.ts'
import { logIn, type TestApp, type WebhookClient } from '../helpers/webhook-client.ts'
import { newPhone, send, type CallResult } from './calls.ts'
import type { FaultFamily } from './family.ts'
import { account, makeHome, startServerAt, type Home } from './server.ts'

const sendPerMinute = 10
const sendBudget = 5
const callers = 8

type Sent = CallResult & { startedAt: number }
type Bench = { home: Home; server: RunningServer; client: WebhookClient }

export const operators: FaultFamily = {
  name: 'operators',
  description: 'another process, or another call, changes what a busy server keeps in its memory',
  counts: { rounds: { full: 20, short: 2 } },
  async run(trial) {
    const home = makeHome(trial, 'operators', { sendPerMinute })
    home.env = { ...home.env, OTPD_PHONE_SEND_BUDGET: 'enforce' }
    const server = await startServerAt(home)
    const violations: string[] = []
    const rounds = trial.count('rounds')
    try {
      const bench = { home, server, client: await logIn(server.url) }
      for (let round = 0; round < rounds; round++) {
        for (const attempt of [unlockApplication, unlockPhone, disableAccount, rotateSecret])
          violations.push(...(await attempt(bench, round)))
        // Keys are replaced under load, once without and once with the suspicion that they leaked.
        if (round < 2) violations.push(...(await replaceMasterKey(bench, round === 1)))
      }
    } finally {
      await server.stop()
    }
    trial.report({
      scenario: `${rounds} times unlocked, disabled and rotated under load, master key replaced`,
      guarantee: 'every call that begins after the change follows it, and no limit admits more',
      violations,
    })
  },
}

async function runHostCommand({ home }: Bench, ...args: string[]): Promise<void> {
  const { exitCode, stderr } = await runBinary(home.home, [...args, '--data-dir', home.dataDir])
  if (exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${exitCode} ${stderr}`)
}

/** Sends with several callers at once. `stop` resolves to all answers, with the times at which their calls began. */
function startCallers({ server }: Bench, app: TestApp, nextPhone = newPhone) {
  const answers: Sent[] = []
  const controller = new AbortController()
  const ended = Promise.all(
    Array.from({ length: callers }, async () => {
      while (!controller.signal.aborted) {
        const startedAt = performance.now()
        answers.push({ ...(await send(server.url, app, nextPhone())), startedAt })
      }
    }),
  )
  return {
    answers,
    /** Lets the callers call for a while, and on a busy machine until a call that began after `time` was answered. */
    async goOnAfter(time: number) {
      do await Bun.sleep(50)
      while (!answers.some(({ startedAt }) => startedAt > time))
    },
    async stop() {
      controller.abort()
      await ended
      return answers
    },
  }
}

/** Sends until nothing is admitted. @returns the number of admitted sends */
async function exhaust(bench: Bench, app: TestApp, nextPhone = newPhone): Promise<number> {
  const calls = startCallers(bench, app, nextPhone)
  while (calls.answers.filter(({ status }) => status !== 201).length < callers) await Bun.sleep(2)
  return (await calls.stop()).filter(({ status }) => status === 201).length
}

/** Checks that a limit admits as many sends as it should, and once more after it was reset, under load. */
async function expectReset(
  bench: Bench,
  name: string,
  {
    app,
    limit,
    nextPhone,
    target,
  }: { app: TestApp; limit: number; nextPhone?: () => string; target: string },
): Promise<string[]> {
  const before = await exhaust(bench, app, nextPhone)
  const calls = startCallers(bench, app, nextPhone)
  await runHostCommand(bench, 'admin', 'unlock', target)
  const first = await send(bench.server.url, app, (nextPhone ?? newPhone)())
  const between = (await calls.stop()).filter(({ status }) => status === 201).length
  const after = between + (first.status === 201 ? 1 : 0) + (await exhaust(bench, app, nextPhone))
  return [
    ...(before === limit ? [] : [`${name}: ${before} of ${limit} were admitted before it was unlocked`]),
    ...(after === limit ? [] : [`${name}: ${after} of ${limit} were admitted after it was unlocked`]),
  ]
}

async function unlockApplication(bench: Bench): Promise<string[]> {
  const app = await bench.client.createApplication('Rated', 'live')
  return expectReset(bench, 'an application', { app, limit: sendPerMinute, target: app.id })
}

async function unlockPhone(bench: Bench, round: number): Promise<string[]> {
  const app = await bench.client.createApplication('Phone', 'live')
  const phone = `+1415555${2000 + round}`
  return expectReset(bench, 'a phone', { app, limit: sendBudget, nextPhone: () => phone, target: phone })
}

async function disableAccount(bench: Bench): Promise<string[]> {
  const app = await bench.client.createApplication()
  const calls = startCallers(bench, app)
  await calls.goOnAfter(0)
  await runHostCommand(bench, 'admin', 'disable', account.email, '--yes')
  const disabledAt = performance.now()
  await calls.goOnAfter(disabledAt)
  const enablingAt = performance.now()
  await runHostCommand(bench, 'admin', 'enable', account.email)
  const enabledAt = performance.now()
  await calls.goOnAfter(enabledAt)
  const answers = await calls.stop()
  // Its tokens ended with the account's.
  bench.client = await logIn(bench.server.url)
  const during = answers.filter(({ startedAt, ms }) => startedAt > disabledAt && startedAt + ms < enablingAt)
  const after = answers.filter(({ startedAt }) => startedAt > enabledAt)
  return [
    ...expectAll('while the account was disabled', during, ({ status }) => status === 401 || status === 403),
    ...expectAll('after it was enabled', after, ({ status }) => status === 201 || status === 429),
  ]
}

async function rotateSecret(bench: Bench): Promise<string[]> {
  const app = await bench.client.createApplication()
  const calls = startCallers(bench, app)
  await calls.goOnAfter(0)
  const { value } = await bench.client.call<{ value: string }>(
    'POST',
    `/v1/applications/${app.id}/rotate/secret`,
  )
  const rotatedAt = performance.now()
  const next = await send(bench.server.url, { headers: { ...app.headers, 'x-client-secret': value } })
  await calls.goOnAfter(rotatedAt)
  const after = (await calls.stop()).filter(({ startedAt }) => startedAt > rotatedAt)
  return [
    ...expectAll('with the old secret', after, ({ status }) => status === 401),
    ...expectAll('with the new secret', [next], ({ status }) => status === 201 || status === 429),
  ]
}

async function replaceMasterKey(bench: Bench, isCompromised: boolean): Promise<string[]> {
  const app = await bench.client.createApplication()
  const calls = startCallers(bench, app)
  await calls.goOnAfter(0)
  await runHostCommand(
    bench,
    'admin',
    'rotate-master-key',
    '--yes',
    ...(isCompromised ? ['--compromised'] : []),
  )
  await calls.goOnAfter(performance.now())
  const answers = await calls.stop()
  const admitted = answers.filter(({ status }) => status === 201).length
  if (isCompromised) bench.client = await logIn(bench.server.url)
  return [
    ...expectAll(
      'while the master key was replaced',
      answers,
      ({ status }) => status === 201 || status === 429,
    ),
    ...(admitted === sendPerMinute
      ? []
      : [`${admitted} of ${sendPerMinute} were admitted with two master keys`]),
  ]
}

function expectAll(
  when: string,
  answers: readonly CallResult[],
  isExpected: (answer: CallResult) => boolean,
) {
  if (answers.length === 0) return [`${when}: no call was made`]
  const wrong = answers.filter((answer) => !isExpected(answer))
  return wrong.length === 0 ? [] : [`${when}: ${wrong.length} of ${answers.length} were ${wrong[0]?.status}`]
}
