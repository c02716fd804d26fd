import { join } from 'node:path'
import { call, startOtpd } from './otpd.ts'
import { encodeRequest } from './load.ts'
import { startServer, type Server } from './machine.ts'
import { measure, measureFlow, type Pace, type Sample, type Service } from './service.ts'

export type Surroundings = { binary: string; folder: string; pace: Pace; env?: Record<string, string> }

/** Several rows of the table that one server makes, in one go. */
export type Case = {
  rows: readonly string[]
  /** In a folder that is empty, on a server that is fresh. @param wanted those of the rows that somebody wants */
  run(around: Surroundings, wanted: (row: string) => boolean): Promise<Record<string, Sample>>
}

const applications = 200
const script = (name: string) => [process.execPath, join(import.meta.dir, 'servers', name)]

async function using<S extends Server, T>(server: S, work: (server: S) => Promise<T>): Promise<T> {
  try {
    return await work(server)
  } finally {
    await server.stop()
  }
}

/** One request over and over. */
const hammer = async (server: Server, request: Uint8Array, pace: Pace) => {
  const { connections, seconds, warmUpSeconds } = pace
  await measure(server, [request], { connections, seconds: warmUpSeconds, repeat: true })
  return measure(server, [request], { connections, seconds, repeat: true })
}

const floor = (row: string, file: string): Case => ({
  rows: [row],
  run: async ({ pace }) => {
    const request = encodeRequest('/v1/otp/send', {}, { phone: '+14155550132' })
    const sample = await using(await startServer(script(file)), (server) => hammer(server, request, pace))
    return { [row]: sample }
  },
})

async function startLimit({ folder, env }: Surroundings): Promise<Service> {
  const server = await startServer([...script('limit.ts'), join(folder, 'limit.db'), String(applications)], {
    ...(env && { env }),
  })
  return {
    ...server,
    encodeSend: (_, phone) => encodeRequest('/v1/otp/send', {}, { phone }),
    encodeVerifies: async () => {
      const ids = await call<string[]>(`http://127.0.0.1:${server.port}/sent`)
      return ids.map((requestId) => encodeRequest('/v1/otp/verify', {}, { requestId, code: '000000' }))
    },
  }
}

const flow = (send: string, verify: string, start: (around: Surroundings) => Promise<Service>): Case => ({
  rows: [send, verify],
  run: async (around, wanted) =>
    using(await start(around), async (service) => {
      const samples = await measureFlow(service, around.pace, wanted(verify))
      return { [send]: samples.send, ...(samples.verify && { [verify]: samples.verify }) }
    }),
})

export const cases: readonly Case[] = [
  floor('bare', 'bare.ts'),
  flow('limit-send', 'limit-verify', startLimit),
  flow('send', 'verify', ({ binary, folder, env }) =>
    startOtpd(binary, folder, { applications, ...(env && { env }) }),
  ),
]
