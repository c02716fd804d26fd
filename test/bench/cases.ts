import { routeChoice } from './route-choice.ts'
import { join } from 'node:path'
import { installBetterAuth, startBetterAuth } from './better-auth.ts'
import { withServer, type BenchCase, type BenchContext } from './bench-case.ts'
import { httpsCases } from './https.ts'
import { startLimit } from './limit.ts'
import { encodeRequest } from './load.ts'
import { startServer } from './machine.ts'
import { startOtpd } from './otpd.ts'
import { preparePocketBase, startPocketBase } from './pocketbase.ts'
import { reads } from './reads.ts'
import { measureFlow, measureRepeated, type Sample, type Service } from './service.ts'
import { makeSlowDisk } from './slow-disk.ts'
import { webhooks } from './webhooks.ts'

/** Creates the case of a baseline server that answers a send and does nothing else. */
const floorCase = (row: string, title: string): BenchCase => ({
  rows: { [row]: title },
  async run({ loadSettings }) {
    const request = encodeRequest('/v1/otp/send', {}, { phone: '+14155550132' })
    const server = await startServer([process.execPath, join(import.meta.dir, `servers/${row}.ts`)])
    return withServer(server, async () => ({ [row]: await measureRepeated(server, [request], loadSettings) }))
  },
})

function flowCase(
  prefix: string,
  title: string,
  start: (context: BenchContext) => Promise<Service>,
): BenchCase {
  const send = `${prefix}send`
  const verify = `${prefix}verify`
  return {
    rows: { [send]: `${title}: send`, [verify]: `${title}: verify` },
    run: async (context, isWanted) =>
      withServer(await start(context), async (service) => {
        const samples = await measureFlow(service, context.loadSettings, isWanted(verify))
        return { [send]: samples.send, ...(samples.verify && { [verify]: samples.verify }) }
      }),
  }
}

/** Repeats a case on a disk whose fsync takes 1 ms longer. */
function onSlowDisk(baseCase: BenchCase): BenchCase {
  const slowRow = (row: string) => `slow-${row}`
  const renameRows = <T>(rows: Readonly<Record<string, T>>, change: (value: T) => T) =>
    Object.fromEntries(Object.entries(rows).map(([row, value]) => [slowRow(row), change(value)]))
  let disk: Record<string, string> = {}
  return {
    rows: renameRows(baseCase.rows, (title) => `${title}, fsync +1 ms`),
    prepare(folder) {
      const environment = makeSlowDisk(folder)
      if (typeof environment === 'string') return environment
      disk = environment
      return baseCase.prepare?.(folder)
    },
    async run(context, isWanted) {
      const env = { ...context.env, ...disk }
      const samples = await baseCase.run({ ...context, env }, (row) => isWanted(slowRow(row)))
      return renameRows<Sample>(samples, (sample) => sample)
    },
  }
}

/** Returns addresses in no order of the 512 networks (/24) that RFC 2544 reserves for benchmarks. */
function clientIpAt(index: number): string {
  const host = (index * 50_021) % 131_072
  return `198.${18 + (host >> 16)}.${(host >> 8) & 255}.${host & 255}`
}

const limit = flowCase('limit-', 'the limit', startLimit)
const otpd = flowCase('', 'otpd', (context) => startOtpd(context))
/**
 * Enforces the guard for inbox messages too, which it judges only on request. Without networks it would have less to do.
 * Countries, prefixes and networks stay within what it allows, because a refusal would end the run.
 */
const guard = flowCase('guard-', 'otpd, guard enforced and networks given', (context) =>
  startOtpd(context, {
    env: { OTPD_GUARD_MODE: 'enforce' },
    sendFields: (index) => ({ clientIp: clientIpAt(index) }),
  }),
)
/** The same calls with a second and a third way in. */
const facades = flowCase('facades-', 'otpd, façades on', (context) =>
  startOtpd(context, { env: { OTPD_COMPAT: 'twilio-verify,camara' } }),
)
const betterAuth = (prefix: string, title: string, favourable: boolean): BenchCase => ({
  ...flowCase(prefix, title, (context) => startBetterAuth(context, favourable)),
  prepare: installBetterAuth,
})
const betterAuthDefault = betterAuth('better-auth-', 'better-auth', false)

const pocketBase: BenchCase = {
  ...flowCase('pocketbase-', 'PocketBase, e-mail, synchronous=NORMAL', startPocketBase),
  prepare: preparePocketBase,
}

export const cases: readonly BenchCase[] = [
  floorCase('bare', 'bare Bun server'),
  floorCase('elysia', 'Elysia and validation'),
  limit,
  otpd,
  guard,
  facades,
  webhooks,
  betterAuthDefault,
  betterAuth('better-auth-favourable-', 'better-auth with cleanup disabled', true),
  pocketBase,
  onSlowDisk(limit),
  onSlowDisk(otpd),
  onSlowDisk(betterAuthDefault),
  reads,
  routeChoice,
  ...httpsCases,
]
