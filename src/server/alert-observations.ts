import { isFailing } from '../shared/failing-providers.ts'
import type { Config } from '../config/config.ts'
import { readGuardStatus, readSpentCaps } from '../domain/guard/status.ts'
import type { GuardSettings } from '../domain/guard/settings.ts'
import type { AlertCause, AlertKind } from '../domain/model/alert.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { CountryDay } from '../domain/store/analytics.ts'
import type { Store } from '../domain/store/store.ts'
import { findHalvedConversions, usualDays, type HalvedConversion } from '../domain/upkeep/conversion.ts'
import { inspectBackups, type BackupInspection } from '../host/backups.ts'
import { inspectCertificate } from '../host/certificate.ts'
import { certificateChecks } from '../shared/certificate-checks.ts'
import { ok, warning, type Check } from '../shared/check.ts'
import { isoDate } from '../domain/log/analytics.ts'
import { minuteMs, utcDay } from '../shared/durations.ts'
import {
  clockSkewCheck,
  formatAge,
  freeSpaceCheck,
  goneNodeCheck,
  guardAlertCheck,
  guardEndText,
  lateBackupChecks,
  openCircuitCheck,
  spentCapCheck,
} from '../shared/operating-checks.ts'
import type { World } from '../world/world.ts'
import type { StoredNode } from './storage.ts'

/** Looks for faults of one kind. A rejection leaves the alerts of that kind as they are. */
export type Observer = {
  kind: AlertKind
  observe(): Promise<AlertCause[]>
  /** Describes the state of a subject in which no fault was found. */
  describe?(subject: string): string | undefined
}

/** Observers of what all nodes share; one node runs them. */
export function createSharedObservers(needs: {
  store: Store<'analytics' | 'guard' | 'providerCircuits' | 'webhookEndpoints'>
  clock: Clock
  guardSettings(): GuardSettings
  /** Names of the providers in use. */
  providers(): readonly string[]
  listNodes(): Promise<StoredNode[]>
  /** Lets waiting calls run. */
  nextTurn(): Promise<void>
}): Observer[] {
  const { store, clock, guardSettings, providers, listNodes } = needs
  const readCountryDays = createCountryDays(store, needs.nextTurn)
  let nodes: StoredNode[] = []
  return [
    {
      kind: 'guard',
      async observe() {
        const { alerts } = await readGuardStatus(store, guardSettings(), clock.now())
        const countries = [...new Set(alerts.map(({ country }) => country))]
        const spent = await readSpentCaps(store, clock.now())
        return [
          ...countries.flatMap((country) => toCauses('guard', country, guardAlertCheck(country))),
          ...spent.flatMap((cap) => toCauses('guard', cap, spentCapCheck(cap))),
        ]
      },
      describe: guardEndText,
    },
    {
      kind: 'provider',
      async observe() {
        const now = clock.now()
        const circuits = (await store.read.providerCircuits.list()).filter((circuit) =>
          isFailing(circuit, now),
        )
        const names = providers()
        const isOpen = (name: string) => circuits.some((circuit) => circuit.name === name)
        const isLast = names.every(isOpen)
        return names.flatMap((name) => {
          const [circuit] = circuits
            .filter((candidate) => candidate.name === name)
            .toSorted((a, b) => b.openUntil - a.openUntil)
          if (!circuit) return []
          return toCauses('provider', name, openCircuitCheck(circuit, isLast))
        })
      },
      describe: (name) => `provider ${name}: ${providers().includes(name) ? 'circuit closed' : 'not in use'}`,
    },
    {
      kind: 'conversion',
      observe: atMostEvery(conversionMs, clock, async () => {
        // In its first minutes the codes of a day are not entered yet.
        const today = utcDay(clock.now() - conversionMs)
        return findHalvedConversions(await readCountryDays(today), today).flatMap((halved) =>
          toCauses('conversion', halved.country, conversionCheck(halved)),
        )
      }),
      describe: (country) => `conversion: ${country}: no longer less than half of the week before`,
    },
    {
      kind: 'node',
      async observe() {
        nodes = await listNodes()
        const gone = nodes.filter(({ isAlive }) => !isAlive)
        return gone.flatMap((node) => toCauses('node', node.name, goneNodeCheck(node, clock.now())))
      },
      describe: (name) =>
        `nodes: ${name} ${nodes.some((node) => node.name === name) ? 'runs' : 'was removed'}`,
    },
    {
      kind: 'webhook',
      async observe() {
        const disabled = await store.read.webhookEndpoints.listDisabled()
        return disabled.flatMap((endpoint) => toCauses('webhook', endpoint.id, disabledCheck(endpoint)))
      },
      describe: (id) => `webhook: endpoint ${id} is no longer disabled`,
    },
  ]
}

const conversionMs = 10 * minuteMs

/**
 * Creates the reader of the counts by country of a day and those before it that a conversion is compared with. A day of 1,000
 * applications in 20 countries has 20,000 rows, so each is read in a turn of its own, and once if it no longer changes.
 */
function createCountryDays(store: Store<'analytics'>, nextTurn: () => Promise<void>) {
  let ended = new Map<number, CountryDay[]>()
  return async (today: number): Promise<CountryDay[]> => {
    const days = Array.from({ length: usualDays + 2 }, (_, index) => today - index)
    const read = new Map<number, CountryDay[]>()
    for (const day of days) {
      read.set(day, ended.get(day) ?? (await store.read.analytics.countriesOfDay(day)))
      if (!ended.has(day)) await nextTurn()
    }
    ended = new Map([...read].filter(([day]) => day < today - 1))
    return [...read.values()].flat()
  }
}

/** Repeats the last result of a function that was called less than `ms` ago. */
function atMostEvery<T>(ms: number, clock: Clock, call: () => Promise<T>): () => Promise<T> {
  let last: { at: number; result: T } | undefined
  return async () => {
    const now = clock.now()
    if (last === undefined || now - last.at >= ms) last = { at: now, result: await call() }
    return last.result
  }
}

/** Observers of this node: its disk, backups, certificate and clock. */
export function createNodeObservers(needs: {
  config: Pick<Config, 'backup' | 'publicUrl' | 'tls'>
  /** Null without files. */
  dataDir: string | null
  clock: Clock
  wall: Clock
  isShared: boolean
  /** Name of the node, if there may be others; otherwise ''. */
  node: string
  world: Pick<World, 'freeBytes'>
}): Observer[] {
  const { config, dataDir, clock, wall, isShared, node, world } = needs
  const observer = (kind: AlertKind, check: () => Check[]): Observer => {
    let checks: Check[] = []
    return {
      kind,
      observe: async () => toCauses(kind, node, ...(checks = check())),
      describe: () => checks.map((one) => describeCheck(kind, node, one))[0],
    }
  }
  return [
    ...(dataDir === null
      ? []
      : [
          observer('backup', () => backupChecks(inspectBackups(config, dataDir), wall.now())),
          observer('disk', () => [freeSpaceCheck(world.freeBytes(dataDir))]),
        ]),
    observer('certificate', () =>
      certificateChecks(config, inspectCertificate({ ...config, dataDir }), wall.now()),
    ),
    observer('clock', () => [
      clockSkewCheck(
        wall.now() - clock.now(),
        isShared ? 'the database' : 'the time that the server has kept since its start',
      ),
    ]),
  ]
}

function backupChecks(inspection: BackupInspection, nowMs: number): Check[] {
  const late = lateBackupChecks(inspection, nowMs)
  const { last } = inspection
  if (late.length > 0 || last === null) return late
  return [ok('backups', `the last one is ${formatAge(last.at, nowMs)} old`)]
}

/** Converts the worst of some checks to a cause; none if all is well. */
function toCauses(kind: AlertKind, subject: string, ...checks: readonly Check[]): AlertCause[] {
  const worst =
    checks.find(({ status }) => status === 'fault') ?? checks.find(({ status }) => status === 'warning')
  if (!worst) return []
  const severity = worst.status === 'fault' ? 'critical' : 'warning'
  const message = describeCheck(kind, subject, worst)
  return [{ kind, subject, severity, message, remedy: worst.remedy ?? '' }]
}

/** Formats the result of a check: `disk space of node-a: 90 MB free`. */
function describeCheck(kind: AlertKind, subject: string, { name, message }: Check): string {
  const node = subject !== '' && nodeKinds.includes(kind) ? ` of ${subject}` : ''
  return `${name}${node}: ${message}`
}

/** Kinds whose subject is the node, which the checks do not name. */
const nodeKinds: readonly AlertKind[] = ['backup', 'disk', 'certificate', 'clock']

const percent = (share: number) => `${Math.round(100 * share)} %`

const conversionCheck = ({ country, day, share, usualShare }: HalvedConversion) =>
  warning(
    'conversion',
    `${country}: ${percent(share)} of the codes of ${isoDate(day)} were verified, ${percent(usualShare)} in the week before`,
    'Compare providers and channels: otpd analytics --by provider; then test one: otpd provider test',
  )

const disabledCheck = ({ id, reason }: { id: string; reason: 'failing' | 'gone' }) =>
  warning(
    'webhook',
    `endpoint ${id} was disabled: ${reason === 'gone' ? 'it answered 410 Gone' : 'it failed for 120 hours'}`,
    `Correct the receiver, then: otpd webhook enable ${id}`,
  )
