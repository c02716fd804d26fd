import { openOtpd, talkTo, type Otpd } from '../otpd.ts'
import { measure, type Sample } from '../service.ts'
import { encodeRead, reads } from './calls.ts'
import type { Filled } from './databases.ts'

/** By the row of the table. */
export type Samples = Record<string, Sample>

export type Subject = { filled: Filled; otpd: Otpd }

export async function open(
  command: string[],
  filled: Filled,
  env: Record<string, string> = {},
): Promise<Subject> {
  const { server, url, headers } = await openOtpd({ command, folder: filled.folder, env })
  // The first two applications are read from.
  return { filled, otpd: talkTo(server, url, headers, filled.applications.slice(2)) }
}

let phones = 0

export const encodeSends = (otpd: Otpd, count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, index) =>
    otpd.encodeSend(index, `+1212${2_000_000 + ((phones++ * 3_000_017) % 8_000_000)}`),
  )

const connections = 8
const sendsPerSecondMax = 10_000

/** Each call for a while, on each server in turn, so that all sizes meet the same machine. */
export async function measureRound(subjects: readonly Subject[], seconds: number): Promise<Samples[]> {
  const samples = subjects.map((): Samples => ({}))
  const inTurn = async (
    row: string,
    requests: (subject: Subject) => Promise<Uint8Array[]>,
    repeat = false,
  ) => {
    for (const [index, subject] of subjects.entries()) {
      const sample = await measure(subject.otpd, await requests(subject), { connections, seconds, repeat })
      const own = samples[index]
      if (own) own[row] = sample
    }
  }
  await inTurn('send', async ({ otpd }) => encodeSends(otpd, seconds * sendsPerSecondMax))
  await inTurn('verify', ({ otpd }) => otpd.encodeVerifies())
  for (const row of reads) await inTurn(row, async (subject) => [encodeRead(row, subject)], true)
  return samples
}
