import { call, startAndLogIn, createOtpdService, type Otpd } from '../otpd.ts'
import { measure, type Sample } from '../service.ts'
import { encodeRead, readNames } from './reads.ts'
import type { FilledDatabase } from './databases.ts'

/** Samples by row name. */
export type Samples = Record<string, Sample>

export type BenchServer = {
  filled: FilledDatabase
  otpd: Otpd
  /** Headers of the busy developer's console calls. */
  headers: Record<string, string>
  /** Verified phone of the busy developer, which got a page of codes. */
  phone: string
  /** A request of the busy developer. */
  requestId: string
}

export async function openServer(
  command: string[],
  filled: FilledDatabase,
  env: Record<string, string> = {},
): Promise<BenchServer> {
  const { server, url, headers } = await startAndLogIn({ command, folder: filled.folder, env })
  // The first two applications are only read.
  const developer = { headers, applications: filled.applications.slice(2) }
  const users = await call<{ data: { phone: string }[] }>(`${url}/v1/users?limit=1`, { headers })
  const phone = users.data[0]?.phone ?? ''
  const otpd = createOtpdService(server, url, [developer])
  for (let i = 0; i < 50; i++) {
    await call(`${url}/v1/otp/send`, {
      method: 'POST',
      headers: { ...developer.applications[0]?.credentials, 'content-type': 'application/json' },
      body: JSON.stringify({ phone }),
    })
  }
  const requests = await call<{ data: { id: string }[] }>(
    `${url}/v1/otp?limit=1&appId=${filled.applications[1]?.id}`,
    { headers },
  )
  return { filled, otpd, headers, phone, requestId: requests.data[0]?.id ?? '' }
}

let phones = 0

export const encodeSends = (otpd: Otpd, count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, index) =>
    otpd.encodeSend(index, `+1212${2_000_000 + ((phones++ * 3_000_017) % 8_000_000)}`),
  )

const connections = 8
const sendsPerSecondMax = 10_000
/** Codes that are sent to be verified by phone. */
const phoneSends = 3_000

/** Measures each call on each server in turn, so that all sizes have the same machine conditions. */
export async function measureRound(servers: readonly BenchServer[], seconds: number): Promise<Samples[]> {
  const samples = servers.map((): Samples => ({}))
  const measureInTurn = async (
    row: string,
    requests: (server: BenchServer) => Promise<Uint8Array[]>,
    repeat = false,
  ) => {
    for (const [index, server] of servers.entries()) {
      const sample = await measure(server.otpd, await requests(server), { connections, seconds, repeat })
      const ownSamples = samples[index]
      if (ownSamples) ownSamples[row] = sample
    }
  }
  await measureInTurn('send', async ({ otpd }) => encodeSends(otpd, seconds * sendsPerSecondMax))
  await measureInTurn('verify', ({ otpd }) => otpd.encodeVerifies())
  for (const { otpd } of servers) await measure(otpd, encodeSends(otpd, phoneSends), { connections, seconds })
  await measureInTurn('verify by phone', ({ otpd }) => otpd.encodeVerifiesByPhone())
  for (const row of readNames) await measureInTurn(row, async (server) => [encodeRead(row, server)], true)
  return samples
}
