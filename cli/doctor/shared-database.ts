import type { InspectedNode, SharedInspection } from '../../src/host/host.ts'
import { goneNodeCheck } from '../../src/shared/operating-checks.ts'
import { fault, ok, warning, type Check } from '../../src/shared/check.ts'
import { auditChecks, matchingKeyCheck } from './data-dir.ts'

type SharedDatabaseInfo = {
  /** Variable, file or credential of the master key. */
  masterKeySource: string | null
  nowMs: number
}

/** Reports on an inspection of a PostgreSQL database; one check if it cannot be used. */
export function sharedDatabaseChecks(inspection: SharedInspection, info: SharedDatabaseInfo): Check[] {
  if (inspection.state === 'unusable') return [fault('database', inspection.message, inspection.remedy)]
  const { facts, latencyMs, masterKeys, nodes, auditTrail } = inspection
  const version = `${Math.floor(facts.version / 10_000)}.${facts.version % 10_000}`
  return [
    ok('database', `PostgreSQL ${version}, answers in ${latencyMs.toFixed(1)} ms`),
    ...durabilityChecks(facts),
    matchingKeyCheck(info.masterKeySource ?? 'the configuration', masterKeys),
    ok('schema', 'up to date'),
    ...nodeChecks(nodes, info.nowMs),
    ...auditChecks(auditTrail, 'otpd audit verify'),
  ]
}

function durabilityChecks({
  fsync,
  synchronousCommit,
  synchronousStandbys,
}: Extract<SharedInspection, { state: 'open' }>['facts']): Check[] {
  const name = 'durability'
  if (fsync === 'off' || synchronousCommit === 'off') {
    return [
      fault(
        name,
        'the server may lose acknowledged codes in a crash, and OTPD_DATABASE_UNSAFE accepts that',
        'Turn on fsync and synchronous_commit, and remove OTPD_DATABASE_UNSAFE.',
      ),
    ]
  }
  const waitsForStandby = synchronousStandbys !== '' && synchronousCommit !== 'local'
  if (waitsForStandby) return [ok(name, 'a commit waits for a standby')]
  return [
    warning(
      name,
      'no synchronous standby: a failover may lose the last commits',
      'Name one in synchronous_standby_names at the server, or accept that the newest codes can be lost.',
    ),
  ]
}

function nodeChecks(nodes: readonly InspectedNode[], nowMs: number): Check[] {
  const name = 'nodes'
  const alive = nodes.filter(({ isAlive }) => isAlive)
  const gone = nodes.filter(({ isAlive }) => !isAlive).map((node) => goneNodeCheck(node, nowMs))
  if (alive.length === 0)
    return [...gone, warning(name, 'none serves this database', 'Start one: otpd serve')]
  const list = alive.map((node) => node.name).join(', ')
  // During an upgrade, versions have other settings.
  const releases = [...Map.groupBy(alive, ({ version }) => version).values()]
  const differences = [
    ...versionChecks(name, alive),
    ...releases.flatMap((release) => configurationChecks(name, release)),
  ]
  return [...gone, ...(differences.length > 0 ? differences : [ok(name, `${list}; one configuration`)])]
}

function versionChecks(name: string, nodes: readonly InspectedNode[]): Check[] {
  const versions = new Set(nodes.map(({ version }) => version))
  if (versions.size < 2) return []
  const list = nodes.map((node) => `${node.name} (${node.version})`).join(', ')
  return [warning(name, `the versions differ: ${list}`, 'Upgrade the older ones.')]
}

function configurationChecks(name: string, nodes: readonly InspectedNode[]): Check[] {
  const [first, ...others] = nodes
  if (!first) return []
  const different = others.filter(({ configuration }) => configuration !== first.configuration)
  if (different.length === 0) return []
  const settings = new Set(different.flatMap((node) => listDifferences(first.settings, node.settings)))
  const names = settings.size === 0 ? 'secrets of providers' : [...settings].join(', ')
  return [
    warning(
      name,
      `the configuration of ${first.name} differs from that of ${different.map((node) => node.name).join(', ')}: ${names}`,
      'Give all nodes the same settings and restart them; otpd config show prints those of a machine.',
    ),
  ]
}

/** Lists the groups of settings that differ between two nodes. */
function listDifferences(a: InspectedNode['settings'], b: InspectedNode['settings']): string[] {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...keys].filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]))
}
