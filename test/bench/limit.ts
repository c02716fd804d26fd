import { join } from 'node:path'
import type { BenchContext } from './bench-case.ts'
import { encodeRequest } from './load.ts'
import { startServer } from './machine.ts'
import { call } from './otpd.ts'
import type { Service } from './service.ts'

export async function startLimit({ folder, applications, env }: BenchContext): Promise<Service> {
  const script = join(import.meta.dir, 'servers/limit.ts')
  const command = [process.execPath, script, join(folder, 'limit.db'), String(applications)]
  const server = await startServer(command, { env })
  return {
    ...server,
    encodeSend: (_, phone) => encodeRequest('/v1/otp/send', {}, { phone }),
    encodeVerifies: async () => {
      const ids = await call<string[]>(`http://127.0.0.1:${server.port}/sent`)
      return ids.map((requestId) => encodeRequest('/v1/otp/verify', {}, { requestId, code: '000000' }))
    },
  }
}
