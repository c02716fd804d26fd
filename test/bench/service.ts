import { runLoad, type Load } from './load.ts'
import { cpuSeconds, machineCpuSeconds, memoryMegabytes, type Server } from './machine.ts'

/** A server that sends and verifies codes, and the encoded requests for it. */
export type Service = Server & {
  encodeSend(index: number, phone: string): Uint8Array
  /** Encodes a verification of each code that was sent and is not yet verified. */
  encodeVerifies(): Promise<Uint8Array[]>
}

export type Sample = Load & {
  cpuMicros: number
  memoryMegabytes: number
  /** Cores used by processes other than the server and the load. */
  otherCores: number
}

export type LoadSettings = { connections: number; seconds: number; warmUpSeconds: number; isTls?: boolean }

/** Starts measuring CPU time. @returns a function that computes the cost per response since then */
function startMeter({ pid }: Server) {
  const readCounters = () => ({
    at: performance.now() / 1000,
    server: cpuSeconds(pid),
    load: cpuSeconds(process.pid),
    machine: machineCpuSeconds(),
  })
  const before = readCounters()
  return (responses: number) => {
    const after = readCounters()
    const server = after.server - before.server
    const otherSeconds = after.machine - before.machine - server - (after.load - before.load)
    return {
      cpuMicros: (server / responses) * 1e6,
      memoryMegabytes: memoryMegabytes(pid),
      otherCores: Math.max(0, otherSeconds) / (after.at - before.at),
    }
  }
}

/** Runs load on a server and measures its cost there. */
export async function measure(
  server: Server,
  requests: readonly Uint8Array[],
  options: { connections: number; seconds: number; repeat?: boolean; isTls?: boolean },
): Promise<Sample> {
  return measureBy(server, () => runLoad(server.port, requests, options))
}

/** Runs load of any kind on a server and measures its cost there. */
export async function measureBy(server: Server, run: () => Promise<Load>): Promise<Sample> {
  const readCost = startMeter(server)
  const load = await run()
  return { ...load, ...readCost(load.responses) }
}

/** Measures requests, repeated in their order, after a warm-up. */
export async function measureRepeated(
  server: Server,
  requests: readonly Uint8Array[],
  loadSettings: LoadSettings,
): Promise<Sample> {
  const { warmUpSeconds, ...settings } = loadSettings
  await measure(server, requests, { ...settings, seconds: warmUpSeconds, repeat: true })
  return measure(server, requests, { ...settings, repeat: true })
}

/** Returns distinct phones in no order, like real ones: 3,000,017 and 8,000,000 are coprime. */
export const phoneAt = (index: number) => `+1415${2_000_000 + ((index * 3_000_017) % 8_000_000)}`

const sendsPerSecondMax = 40_000

/** After about as many calls of each kind the JIT compiler has finished. */
const compiledAfterCalls = 15_000

/**
 * Sends for the given time, then verifies the sent codes for at most the same time. Up to three rounds of warm-up precede;
 * their figures are discarded.
 */
export async function measureFlow(
  service: Service,
  loadSettings: LoadSettings,
  withMeasuredVerify: boolean,
): Promise<{ send: Sample; verify?: Sample }> {
  let phones = 0
  const { connections } = loadSettings
  const round = async (seconds: number, withVerify: boolean) => {
    const sends = Array.from({ length: seconds * sendsPerSecondMax }, (_, index) =>
      service.encodeSend(index, phoneAt(phones++)),
    )
    const send = await measure(service, sends, { connections, seconds })
    if (!withVerify) return { send }
    return { send, verify: await measure(service, await service.encodeVerifies(), { connections, seconds }) }
  }
  // In turn, because the guard refuses sends when too many before them were not verified.
  let warmUpCalls = 0
  for (let rounds = 0; rounds < 3 && warmUpCalls < compiledAfterCalls; rounds++)
    warmUpCalls += (await round(loadSettings.warmUpSeconds, true)).send.responses
  return round(loadSettings.seconds, withMeasuredVerify)
}
