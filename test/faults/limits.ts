import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { newPhone, send, violationUnless, type CallResult } from './calls.ts'
import { buildShim } from './disk-shim.ts'
import type { FaultFamily, Trial } from './family.ts'
import { killBeforeCalls, startWithFault, type DiskFault } from './failing-disk.ts'
import { makeHome, startServerAt, type Home } from './server.ts'

const sendPerMinute = 40
/** Sends to one phone within 10 minutes. */
const sendBudget = 5
const phone = '+14155550177'
const callers = 4
/** The windows of the limits must not end during an attempt. */
const attemptMsMax = 50_000

type Template = { home: Home; rated: TestApp; other: TestApp }

export const limits: FaultFamily = {
  name: 'limits',
  description: 'kill -9 before each write while limits are being reached',
  counts: { limits: { full: 60, short: 5 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    const template = await makeTemplate(trial)
    const { attempts, calls, violations } = await killBeforeCalls(library, trial.count('limits'), (fault) =>
      runAttempt(trial, template, fault),
    )
    const kills = attempts.slice(1)
    trial.report({
      scenario: `kill -9 before ${kills.length} of ${calls} calls, a limit of ${sendPerMinute} a minute and ${sendBudget} a phone`,
      guarantee: 'exactly the limit is admitted: nothing stored is forgotten, nothing counts twice',
      figures: { reached: kills.filter(({ isReached }) => isReached).length },
      violations,
    })
  },
}

/** Creates the home that each attempt copies. A phone's limit holds for live applications. */
async function makeTemplate(trial: Trial): Promise<Template> {
  const home = makeHome(trial, 'template', { sendPerMinute })
  home.env = { ...home.env, OTPD_PHONE_SEND_BUDGET: 'enforce' }
  const server = await startServerAt(home)
  try {
    const client = await logIn(server.url)
    const rated = await client.createApplication('Rated', 'live')
    return { home, rated, other: await client.createApplication('Other', 'live') }
  } finally {
    await server.stop('SIGKILL')
  }
}

async function runAttempt(trial: Trial, { home: from, rated, other }: Template, fault: DiskFault) {
  const startedAt = performance.now()
  const { home, server, ...attempt } = await startWithFault(trial, from, fault)
  const violations: string[] = []
  const reachLimits = async (url: string) => {
    const refusals = await Promise.all([
      sendUntilRefused(url, rated, newPhone),
      sendUntilRefused(url, other, () => phone),
    ])
    for (const { status } of refusals.flat())
      if (status !== 429 && status !== 0) violations.push(`a send was refused with ${status}`)
  }
  if (typeof server !== 'string') {
    await reachLimits(server.url)
    await server.stop('SIGKILL')
  }
  const isReached = attempt.isReached()
  const calls = attempt.end()
  const next = await startServerAt(home)
  try {
    await reachLimits(next.url)
  } finally {
    await next.stop('SIGKILL')
  }
  if (performance.now() - startedAt < attemptMsMax) violations.push(...checkCounts(home))
  else if (!trial.short) violations.push('the attempt took too long')
  attempt.remove()
  return { violations, calls, isReached }
}

/** Sends until a limit refuses, or the server is gone. @returns the refusal of each caller */
const sendUntilRefused = (url: string, app: TestApp, nextPhone: () => string): Promise<CallResult[]> =>
  Promise.all(
    Array.from({ length: callers }, async () => {
      for (;;) {
        const response = await send(url, app, nextPhone())
        if (response.status !== 201) return response
      }
    }),
  )

/** Counts the requests that were stored, answered or not, against the limits. */
function checkCounts({ dataDir }: Home): string[] {
  const database = new Database(join(dataDir, 'otpd.db'), { readonly: true })
  try {
    const counts = database
      .query<{ n: number }, []>('select count(*) as n from otp_requests group by app_id order by n')
      .all()
      .map(({ n }) => n)
    return [
      ...violationUnless(counts[0] === sendBudget, `${counts[0]} of ${sendBudget} sends to one phone`),
      ...violationUnless(counts[1] === sendPerMinute, `${counts[1]} of ${sendPerMinute} sends in a minute`),
    ]
  } finally {
    database.close()
  }
}
