import type { HostInspection } from '../../src/host/host.ts'
import { fault, ok, warning, type Check } from './check.ts'
import { shellWord } from '../terminal/text.ts'

type OpenDirectory = Extract<HostInspection, { state: 'open' }>

/** Whether the server may migrate; where it keeps its files, written as a person would. */
export type HostPlace = { dataDir: string; shown: string; migrate: boolean }

/** What an inspection of the data directory means. One line where there is nothing to inspect. */
export function hostChecks(inspection: HostInspection, place: HostPlace): Check[] {
  const { dataDir, shown } = place
  const name = 'data directory'
  if (inspection.state === 'missing') {
    return [
      warning(
        name,
        `there is none at ${shown} yet`,
        'Make it with: otpd serve; or name another: --data-dir DIR',
      ),
    ]
  }
  if (inspection.state === 'closed') {
    return [
      fault(
        name,
        `this user may not look into ${shown} (${inspection.cause})`,
        `Ask as its owner: sudo -u '#${inspection.ownerId}' otpd doctor --data-dir ${shellWord(dataDir)}`,
      ),
    ]
  }
  return [
    ...fileChecks(inspection, place),
    spaceCheck(inspection.freeBytes),
    masterKeyCheck(inspection, place),
    ...databaseChecks(inspection, place),
  ]
}

function fileChecks(inspection: OpenDirectory, { dataDir, shown }: HostPlace): Check[] {
  const { isExposed, isOwn, isHeld, exposed, strayed, ownerId } = inspection
  const name = 'data directory'
  const checks: Check[] = []
  const dir = shellWord(dataDir)
  if (isExposed) {
    checks.push(warning(name, `other users can look into ${shown}`, `Close it: chmod 700 ${dir}`))
  }
  if (exposed.length > 0) {
    const paths = exposed.map((file) => shellWord(`${dataDir}/${file}`)).join(' ')
    checks.push(fault(name, `other users can read ${exposed.join(', ')}`, `Close: chmod go= ${paths}`))
  }
  if (strayed.length > 0) {
    checks.push(
      fault(
        name,
        `of another owner than the directory, so that the server may not use them: ${strayed.join(', ')}`,
        `Give them back: sudo chown -R ${ownerId} ${dir}`,
      ),
    )
  }
  if (checks.length > 0) return checks
  const owner = isOwn ? 'yours' : `of the user ${ownerId}`
  return [
    ok(
      name,
      `${shown}, ${owner}, closed to others, ${isHeld ? 'a server runs on it' : 'no server runs on it'}`,
    ),
  ]
}

const megabyte = 1_000_000
const freeBytesLow = 1000 * megabyte
const freeBytesMin = 100 * megabyte

function spaceCheck(freeBytes: number): Check {
  const name = 'disk space'
  const free =
    freeBytes < freeBytesLow
      ? `${Math.floor(freeBytes / megabyte)} MB`
      : `${(freeBytes / 1000 / megabyte).toFixed(1)} GB`
  const remedy = 'Free some, or move the data directory: a server that cannot write ends.'
  if (freeBytes < freeBytesMin) return fault(name, `${free} free`, remedy)
  if (freeBytes < freeBytesLow) return warning(name, `${free} free`, remedy)
  return ok(name, `${free} free`)
}

function masterKeyCheck({ masterKey, database }: OpenDirectory, { dataDir, shown }: HostPlace): Check {
  const name = 'master key'
  const putBack = `Put the right one back at ${shellWord(`${dataDir}/master.key`)}, or name it: OTPD_MASTER_KEY_FILE`
  if (masterKey === 'fits') return ok(name, 'fits the database')
  if (masterKey === 'unchecked') return ok(name, 'not compared with the database')
  if (masterKey === 'unusable') return fault(name, `${shown}/master.key does not hold a master key`, putBack)
  if (masterKey === 'wrong') return fault(name, 'the database belongs to another master key', putBack)
  return database.state === 'missing'
    ? ok(name, 'none yet; the first start makes it')
    : fault(name, 'it is missing, and the database was made with it', putBack)
}

function databaseChecks({ database, isHeld }: OpenDirectory, { migrate, shown }: HostPlace): Check[] {
  if (database.state === 'missing') return [ok('database', 'none yet; the first start makes it')]
  const restore = `Put a backup in its place: otpd restore FILE; some lie in ${shown}/backups`
  if (database.state === 'unreadable') {
    return [
      /^SQLITE_(CORRUPT|NOTADB)/.test(database.cause)
        ? fault('database', `it is damaged, or not a database (${database.cause})`, restore)
        : fault('database', `it cannot be read (${database.cause})`, 'Check its rights, and the disk.'),
    ]
  }
  const { pending, misfit, damage } = database
  return [
    schemaCheck(pending, misfit, { isHeld, migrate }),
    damage === null ? ok('database', 'whole') : fault('database', `it is damaged: ${damage}`, restore),
  ]
}

function schemaCheck(
  pending: readonly string[],
  misfit: string | null,
  { isHeld, migrate }: { isHeld: boolean; migrate: boolean },
): Check {
  const name = 'schema'
  if (misfit !== null) {
    const [cause = '', remedy = ''] = misfit.split(/(?<=\.) /)
    return fault(name, cause.replace(/\.$/, ''), remedy || 'Use the otpd that made it, or restore a backup.')
  }
  if (pending.length === 0) return ok(name, 'of this version')
  const lacks = `the database lacks ${pending.join(', ')}`
  if (isHeld) return warning(name, `${lacks}: an older otpd runs on it`, 'Restart the server with this otpd.')
  if (!migrate) return fault(name, `${lacks}, and may not be migrated`, 'Migrate it: otpd migrate up')
  return warning(name, lacks, 'The next start migrates it, after a backup: otpd serve')
}
