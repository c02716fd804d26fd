import type { Config } from '../../src/config/config.ts'
import type { Host, HostAlerts } from '../../src/host/host.ts'
import { exitCodes } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import { printable, relativeTime } from '../terminal/text.ts'
import { asCliError, type HostFlags } from './commands.ts'
import { loadServerConfig, requireConfig } from './config.ts'
import { findRunning } from './running.ts'

/** A destination of alerts, and the notices that it has not taken yet. */
export type DestinationState = {
  name: string
  kind: string
  min: string
  waiting: number
  /** Attempts of the oldest of them. */
  attempts: number
  /** When the oldest of them was due; null without one. */
  since: string | null
  /** Why the last attempt failed; null without one. */
  failure: string | null
}

export type AlertState = Pick<HostAlerts, 'alerts' | 'waiting'> & { destinations: DestinationState[] }

/** Result of a test of one destination. */
type AlertTest = { destination: string; sent: boolean; failure: string | null }

/** Lists the destinations of the running server, otherwise those of the configuration. */
export async function listDestinations(io: Io, flags: HostFlags): Promise<Config['alerts']> {
  const loaded = await loadServerConfig(io, flags, 'host command')
  const running = await findRunning(loaded)
  return (running?.config ?? requireConfig(loaded, exitCodes.usage)).alerts
}

/** Joins the alerts with the destinations, each with the notices that wait for it. */
export const describeAlerts = (
  { alerts, waiting }: HostAlerts,
  destinations: Config['alerts'],
): AlertState => ({
  alerts,
  waiting,
  destinations: destinations.map(({ name, kind, min }) => {
    const own = waiting.filter(({ destination }) => destination === name)
    const [oldest] = own
    const failed = own.find(({ failure }) => failure !== null)
    const { attempts = 0, failure = null } = failed ?? oldest ?? {}
    return { name, kind, min, waiting: own.length, attempts, since: oldest?.at ?? null, failure }
  }),
})

/** Describes what a destination has not taken: `fails since 3 min ago: connection refused (4 attempts)`. */
export function destinationText(
  { waiting, attempts, since, failure }: DestinationState,
  nowMs: number,
): string {
  if (since === null) return 'nothing waits'
  const notices = waiting === 1 ? '1 notice' : `${waiting} notices`
  if (failure === null) return `${notices} to send`
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`
  return `${notices} since ${relativeTime(since, nowMs)}: ${printable(failure)} (${tries})`
}

/**
 * Opens the database of a server that runs on this machine. The API has no alerts: its callers are developers, and alerts are
 * the operator's.
 *
 * @param url of the server
 * @returns null if no server of that URL runs here
 */
export async function withRunningHost<T>(
  io: Io,
  url: string,
  access: 'read' | 'write',
  work: (host: Host, config: Config) => Promise<T>,
): Promise<T | null> {
  const running = await findRunning(await loadServerConfig(io, {}, 'host command'))
  const urls = running === null ? [] : [running.url, running.config.publicUrl]
  if (running === null || !urls.some((own) => URL.parse(own ?? '')?.origin === new URL(url).origin))
    return null
  const { openHost } = await import('../../src/server/bundle.ts')
  try {
    const host = await openHost({ config: running.config, access, warn() {} })
    try {
      return await work(host, running.config)
    } finally {
      await host.close()
    }
  } catch (error) {
    throw asCliError(error)
  }
}

const waitMs = 30_000
const pollMs = 250

/** Queues a test for each destination, and waits until the running server has sent it or failed. */
export async function sendTests(
  host: Host,
  destinations: readonly string[],
  { now, sleep }: Pick<Io, 'now' | 'sleep'>,
): Promise<AlertTest[]> {
  const at = await host.queueTestAlerts(destinations)
  const untilMs = now() + waitMs
  for (;;) {
    const { waiting } = await host.listAlerts()
    const results = destinations.map((destination) => {
      const queued = waiting.find((notice) => notice.destination === destination && notice.at === at)
      return { destination, sent: queued === undefined, failure: queued?.failure ?? null }
    })
    if (results.every(({ sent, failure }) => sent || failure !== null) || now() >= untilMs) {
      await host.deleteTestAlerts(destinations, at)
      return results
    }
    await sleep(pollMs)
  }
}

/** Describes the result of a test: `email: sent`. */
export const testText = ({ destination, sent, failure }: AlertTest): string =>
  `${printable(destination)}: ${sent ? 'sent' : printable(failure ?? 'the server has not sent it in 30 seconds')}`
