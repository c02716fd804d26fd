import { join } from 'node:path'
import { installBetterAuth, startBetterAuth } from './better-auth.ts'
import { using, type Case, type Surroundings } from './case.ts'
import { startLimit } from './limit.ts'
import { encodeRequest } from './load.ts'
import { startServer } from './machine.ts'
import { startOtpd } from './otpd.ts'
import { reads } from './reads.ts'
import { measureFlow, measureOne, type Sample, type Service } from './service.ts'
import { makeSlowDisk } from './slow-disk.ts'
import { webhooks } from './webhooks.ts'

/** A server that answers a send and does nothing else. */
const floor = (row: string, title: string): Case => ({
  rows: { [row]: title },
  async run({ pace }) {
    const request = encodeRequest('/v1/otp/send', {}, { phone: '+14155550132' })
    const server = await startServer([process.execPath, join(import.meta.dir, `servers/${row}.ts`)])
    return using(server, async () => ({ [row]: await measureOne(server, request, pace) }))
  },
})

function flow(prefix: string, title: string, start: (around: Surroundings) => Promise<Service>): Case {
  const send = `${prefix}send`
  const verify = `${prefix}verify`
  return {
    rows: { [send]: `${title}: send`, [verify]: `${title}: verify` },
    run: async (around, isWanted) =>
      using(await start(around), async (service) => {
        const samples = await measureFlow(service, around.pace, isWanted(verify))
        return { [send]: samples.send, ...(samples.verify && { [verify]: samples.verify }) }
      }),
  }
}

/** The same on a disk whose fsync takes 1 ms more. */
function onSlowDisk(fast: Case): Case {
  const slow = (row: string) => `slow-${row}`
  const rename = <T>(rows: Readonly<Record<string, T>>, change: (value: T) => T) =>
    Object.fromEntries(Object.entries(rows).map(([row, value]) => [slow(row), change(value)]))
  let disk: Record<string, string> = {}
  return {
    rows: rename(fast.rows, (title) => `${title}, fsync +1 ms`),
    prepare(folder) {
      const made = makeSlowDisk(folder)
      if (typeof made === 'string') return made
      disk = made
      return fast.prepare?.(folder)
    },
    async run(around, isWanted) {
      const env = { ...around.env, ...disk }
      const samples = await fast.run({ ...around, env }, (row) => isWanted(slow(row)))
      return rename<Sample>(samples, (sample) => sample)
    },
  }
}

const limit = flow('limit-', 'the limit', startLimit)
const otpd = flow('', 'otpd', startOtpd)
const betterAuth = (prefix: string, title: string, favourable: boolean): Case => ({
  ...flow(prefix, title, (around) => startBetterAuth(around, favourable)),
  prepare: installBetterAuth,
})
const ordinary = betterAuth('better-auth-', 'better-auth', false)

export const cases: readonly Case[] = [
  floor('bare', 'bare Bun server'),
  floor('elysia', 'Elysia and validation'),
  limit,
  otpd,
  webhooks,
  ordinary,
  betterAuth('better-auth-favourable-', 'better-auth, never cleaning up', true),
  onSlowDisk(limit),
  onSlowDisk(otpd),
  onSlowDisk(ordinary),
  reads,
]
