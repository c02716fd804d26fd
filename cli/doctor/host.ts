import type { HostInspection } from '../../src/host/host.ts'
import { fault, ok, warning, type Check } from './check.ts'
import { shellWord } from '../terminal/text.ts'

type OpenDirectory = Extract<HostInspection, { state: 'accessible' }>

/** Whether the server may migrate; where it keeps its files, written as a person would. */
export type DataDirInfo = { dataDir: string; displayPath: string; migrate: boolean }

/** What an inspection of the data directory means. One line where there is nothing to inspect. */
export function hostChecks(inspection: HostInspection, dataDirInfo: DataDirInfo): Check[] {
  const { dataDir, displayPath } = dataDirInfo
  const name = 'data directory'
  if (inspection.state === 'missing') {
    return [
      warning(
        name,
        `there is none at ${displayPath} yet`,
        'Make it with: otpd serve; or name another: --data-dir DIR',
      ),
    ]
  }
  if (inspection.state === 'inaccessible') {
    return [
      fault(
        name,
        `this user may not look into ${displayPath} (${inspection.cause})`,
        `Ask as its owner: sudo -u '#${inspection.ownerId}' otpd doctor --data-dir ${shellWord(dataDir)}`,
      ),
    ]
  }
  return [
    ...fileChecks(inspection, dataDirInfo),
    spaceCheck(inspection.freeBytes),
    masterKeyCheck(inspection, dataDirInfo),
    ...databaseChecks(inspection, dataDirInfo),
  ]
}

function fileChecks(inspection: OpenDirectory, { dataDir, displayPath }: DataDirInfo): Check[] {
  const { isExposed, isOwn, isHeld, exposed, wrongOwner, ownerId } = inspection
  const name = 'data directory'
  const checks: Check[] = []
  const dir = shellWord(dataDir)
  if (isExposed) {
    checks.push(warning(name, `other users can look into ${displayPath}`, `Close it: chmod 700 ${dir}`))
  }
  if (exposed.length > 0) {
    const paths = exposed.map((file) => shellWord(`${dataDir}/${file}`)).join(' ')
    checks.push(fault(name, `other users can read ${exposed.join(', ')}`, `Close: chmod go= ${paths}`))
  }
  if (wrongOwner.length > 0) {
    checks.push(
      fault(
        name,
        `of another owner than the directory, so that the server may not use them: ${wrongOwner.join(', ')}`,
        `Give them back: sudo chown -R ${ownerId} ${dir}`,
      ),
    )
  }
  if (checks.length > 0) return checks
  const owner = isOwn ? 'yours' : `of the user ${ownerId}`
  return [
    ok(
      name,
      `${displayPath}, ${owner}, closed to others, ${isHeld ? 'a server runs on it' : 'no server runs on it'}`,
    ),
  ]
}

const megabyte = 1_000_000
const freeBytesLow = 1000 * megabyte
const freeBytesMin = 100 * megabyte

function spaceCheck(freeBytes: number): Check {
  const name = 'disk space'
  const freeText =
    freeBytes < freeBytesLow
      ? `${Math.floor(freeBytes / megabyte)} MB`
      : `${(freeBytes / 1000 / megabyte).toFixed(1)} GB`
  const remedy = 'Free some, or move the data directory: a server that cannot write ends.'
  if (freeBytes < freeBytesMin) return fault(name, `${freeText} free`, remedy)
  if (freeBytes < freeBytesLow) return warning(name, `${freeText} free`, remedy)
  return ok(name, `${freeText} free`)
}

function masterKeyCheck(
  { masterKey, database }: OpenDirectory,
  { dataDir, displayPath }: DataDirInfo,
): Check {
  const name = 'master key'
  const restoreKeyRemedy = `Put the right one back at ${shellWord(`${dataDir}/master.key`)}, or name it: OTPD_MASTER_KEY_FILE`
  if (masterKey === 'matches') return ok(name, 'fits the database')
  if (masterKey === 'unchecked') return ok(name, 'not compared with the database')
  if (masterKey === 'unusable')
    return fault(name, `${displayPath}/master.key does not hold a master key`, restoreKeyRemedy)
  if (masterKey === 'mismatch')
    return fault(name, 'the database belongs to another master key', restoreKeyRemedy)
  return database.state === 'missing'
    ? ok(name, 'none yet; the first start makes it')
    : fault(name, 'it is missing, and the database was made with it', restoreKeyRemedy)
}

function databaseChecks({ database, isHeld }: OpenDirectory, { migrate, displayPath }: DataDirInfo): Check[] {
  if (database.state === 'missing') return [ok('database', 'none yet; the first start makes it')]
  const restore = `Put a backup in its place: otpd restore FILE; some lie in ${displayPath}/backups`
  if (database.state === 'unreadable') {
    return [
      /^SQLITE_(CORRUPT|NOTADB)/.test(database.cause)
        ? fault('database', `it is damaged, or not a database (${database.cause})`, restore)
        : fault('database', `it cannot be read (${database.cause})`, 'Check its rights, and the disk.'),
    ]
  }
  const { pending, schemaError, damage } = database
  return [
    schemaCheck(pending, schemaError, { isHeld, migrate }),
    damage === null ? ok('database', 'whole') : fault('database', `it is damaged: ${damage}`, restore),
  ]
}

function schemaCheck(
  pending: readonly string[],
  schemaError: string | null,
  { isHeld, migrate }: { isHeld: boolean; migrate: boolean },
): Check {
  const name = 'schema'
  if (schemaError !== null) {
    const [cause = '', remedy = ''] = schemaError.split(/(?<=\.) /)
    return fault(name, cause.replace(/\.$/, ''), remedy || 'Use the otpd that made it, or restore a backup.')
  }
  if (pending.length === 0) return ok(name, 'of this version')
  const lacksText = `the database lacks ${pending.join(', ')}`
  if (isHeld)
    return warning(name, `${lacksText}: an older otpd runs on it`, 'Restart the server with this otpd.')
  if (!migrate) return fault(name, `${lacksText}, and may not be migrated`, 'Migrate it: otpd migrate up')
  return warning(name, lacksText, 'The next start migrates it, after a backup: otpd serve')
}
