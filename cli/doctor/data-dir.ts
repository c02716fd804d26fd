import type { HostInspection } from '../../src/host/host.ts'
import { freeSpaceCheck } from '../../src/shared/operating-checks.ts'
import { fault, ok, warning, type Check } from '../../src/shared/check.ts'
import { explainCode } from '../../src/shared/error-cause.ts'
import { restrictAccess } from '../../src/shared/restrict-access.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { formatBytes, formatRemaining, listShort } from '../terminal/text.ts'

type OpenDirectory = Extract<HostInspection, { state: 'accessible' }>

type OpenDatabase = Extract<OpenDirectory['database'], { state: 'readable' }>

/** The data directory, its path as shown to people, and whether the server may migrate the database. */
export type DataDirInfo = {
  dataDir: string
  displayPath: string
  migrate: boolean
  /** Variable, file or credential of the master key; null: the key file of the data directory. */
  masterKeySource: string | null
  /** It is the default, and the configuration, which could not be read as a whole, may name another. */
  isGuess?: boolean
}

/** Reports on an inspection of the data directory; one check if it is missing or inaccessible. */
export function dataDirChecks(inspection: HostInspection, dataDirInfo: DataDirInfo): Check[] {
  const { dataDir, displayPath, isGuess = false } = dataDirInfo
  const name = 'data directory'
  if (inspection.state === 'missing' && isGuess) {
    return [
      warning(
        name,
        `not found at ${displayPath}, the default; the configuration may name another`,
        'Correct the configuration, or name the directory: --data-dir DIR',
      ),
    ]
  }
  if (inspection.state === 'missing') {
    return [
      warning(
        name,
        `${displayPath} does not exist yet`,
        'Create it with: otpd serve; or use another: --data-dir DIR',
      ),
    ]
  }
  if (inspection.state === 'inaccessible') {
    if (inspection.cause === 'ENOTDIR')
      return [fault(name, `${displayPath} is not a directory`, 'Name the right one: --data-dir DIR')]
    return [
      fault(
        name,
        `this user cannot read ${displayPath} (${explainCode(inspection.cause)})`,
        `Run it as the owner: sudo -u '#${inspection.ownerId}' otpd doctor --data-dir ${shellWord(dataDir)}`,
      ),
    ]
  }
  return [
    ...fileChecks(inspection, dataDirInfo),
    freeSpaceCheck(inspection.freeBytes),
    masterKeyCheck(inspection, dataDirInfo),
    ...databaseChecks(inspection, dataDirInfo),
    ...backupChecks(inspection, dataDirInfo),
    ...auditChecks(inspection.auditTrail, `otpd audit verify --data-dir ${shellWord(dataDir)}`),
  ]
}

function fileChecks(inspection: OpenDirectory, { dataDir, displayPath }: DataDirInfo): Check[] {
  const { database, isExposed, isOwn, isHeld, exposed, wrongOwner, ownerId } = inspection
  const name = 'data directory'
  const checks: Check[] = []
  const dir = shellWord(dataDir)
  // A directory without any data may be another program's, or the system's.
  const isForeign = database.state === 'missing' && database.isForeign
  if (isExposed && !isForeign) {
    checks.push(warning(name, `other users can read ${displayPath}`, restrictAccess([dataDir])))
  }
  if (exposed.length > 0) {
    checks.push(
      fault(
        name,
        `other users can read ${exposed.join(', ')}`,
        restrictAccess(exposed.map((file) => `${dataDir}/${file}`)),
      ),
    )
  }
  if (wrongOwner.length > 0) {
    checks.push(
      fault(
        name,
        `the owner differs from that of the directory, so the server may not use them: ${wrongOwner.join(', ')}`,
        `Restore the owner: sudo chown -R ${ownerId} ${dir}`,
      ),
    )
  }
  if (checks.length > 0) return checks
  const owner = isOwn ? 'owned by you' : `owned by user ${ownerId}`
  if (isForeign) return [ok(name, `${displayPath}, ${owner}, without files of otpd`)]
  return [ok(name, `${displayPath}, ${owner}, private, ${isHeld ? 'in use by a server' : 'not in use'}`)]
}

function masterKeyCheck(
  { masterKey, database }: OpenDirectory,
  { dataDir, displayPath, masterKeySource }: DataDirInfo,
): Check {
  const name = 'master key'
  const source = masterKeySource ?? `${displayPath}/master.key`
  const restoreKeyRemedy = `Put the right key back at ${shellWord(`${dataDir}/master.key`)}, or name its file in OTPD_MASTER_KEY_FILE`
  if (masterKey === 'matches')
    return matchingKeyCheck(source, database.state === 'readable' ? database.masterKeys : 1)
  if (masterKey === 'unchecked') return ok(name, `from ${source}, not compared with the database`)
  if (masterKey === 'unusable') return fault(name, `${source} is not a master key`, restoreKeyRemedy)
  if (masterKey === 'mismatch')
    return fault(name, 'the database was created with another master key', restoreKeyRemedy)
  return database.state === 'missing'
    ? ok(name, 'none yet; the first start creates it')
    : fault(name, 'missing, but the database needs it', restoreKeyRemedy)
}

/** Reports on a master key that opens the database. @param count how many master keys open it */
export const matchingKeyCheck = (source: string, count: number): Check =>
  count > 1
    ? warning(
        'master key',
        `from ${source}; another one opens the database too`,
        'Start every node with the new one, then run: otpd admin rotate-master-key --finish',
      )
    : ok('master key', `from ${source}, matches the database`)

function databaseChecks({ database, isHeld, upgrade }: OpenDirectory, { migrate }: DataDirInfo): Check[] {
  if (database.state === 'missing')
    return database.isNew
      ? [ok('database', 'none yet; the first start creates it')]
      : [fault('database', database.message, database.remedy)]
  const restore = 'Restore a backup: otpd restore latest, or another one of otpd backup list'
  if (database.state === 'unreadable') {
    return [
      /^SQLITE_(CORRUPT|NOTADB)/.test(database.cause)
        ? fault('database', `damaged, or not a database (${database.cause})`, restore)
        : fault(
            'database',
            `cannot be read (${explainCode(database.cause)})`,
            'Check its permissions and the disk.',
          ),
    ]
  }
  const { damage, moved } = database
  if (moved) return [fault('database', moved.message, moved.remedy)]
  return [
    upgrade ? upgradeCheck(upgrade) : schemaCheck(database, { isHeld, migrate }),
    damage === null ? ok('database', 'intact') : fault('database', `damaged: ${damage}`, restore),
    ...(database.seals ? [sealsCheck(database.seals, isHeld, restore)] : []),
  ]
}

function sealsCheck(
  { percent, unreadable }: NonNullable<OpenDatabase['seals']>,
  isHeld: boolean,
  restore: string,
): Check {
  const name = 'encryption'
  if (unreadable && unreadable.length > 0) {
    const list = listShort(unreadable).replaceAll('\n', ' ')
    return fault(name, `stored values cannot be decrypted: ${list}`, restore)
  }
  if (percent === null) return ok(name, 'all stored data is encrypted with the newest key')
  return warning(
    name,
    `stored data is being encrypted with the newest key: ${percent} % done`,
    isHeld ? 'The server goes on in the background.' : 'Start the server, which goes on in the background.',
  )
}

function backupChecks({ unsealedBackups }: OpenDirectory, { dataDir, displayPath }: DataDirInfo): Check[] {
  if (unsealedBackups.length === 0) return []
  const paths = unsealedBackups.map((file) => shellWord(`${dataDir}/backups/${file}`)).join(' ')
  return [
    warning(
      'backups',
      `in ${displayPath}/backups, these hold phone numbers and secrets in plain text: ${unsealedBackups.join(', ')}`,
      `Delete them when you no longer need them: rm ${paths}`,
    ),
  ]
}

/**
 * Reports on the verification of the audit trail.
 *
 * @param auditTrail null if it could not be verified
 * @param verifyCommand shows all breaks
 */
export function auditChecks(auditTrail: OpenDirectory['auditTrail'], verifyCommand: string): Check[] {
  if (auditTrail === null) return []
  const name = 'audit trail'
  const { entries, breaks } = auditTrail
  const [first] = breaks
  if (first === undefined) return [ok(name, `unbroken, ${entries} ${entries === 1 ? 'entry' : 'entries'}`)]
  const place = first.position === null ? '' : ` at entry ${first.position}`
  return [
    fault(
      name,
      `tampered with: chain ${first.chain ?? 'unknown'}${place}${breaks.length > 1 ? `, and ${breaks.length - 1} more` : ''}`,
      `See all: ${verifyCommand}; then find out who can write to the database`,
    ),
  ]
}

function upgradeCheck({ step, percent, remainingSeconds }: NonNullable<OpenDirectory['upgrade']>): Check {
  const left =
    remainingSeconds === undefined ? '' : `, about ${formatRemaining(1000 * remainingSeconds)} left`
  return warning(
    'schema',
    `the server is upgrading the database: ${percent} %${left} (${step})`,
    'Wait, and do not stop it: otpd health --wait 10m',
  )
}

function schemaCheck(
  { pending, schemaError, missingSpace }: OpenDatabase,
  { isHeld, migrate }: { isHeld: boolean; migrate: boolean },
): Check {
  const name = 'schema'
  if (schemaError !== null) {
    const [cause = '', remedy = ''] = schemaError.split(/(?<=\.) /)
    return fault(
      name,
      cause.replace(/\.$/, ''),
      remedy || 'Use the otpd version that created it, or restore a backup.',
    )
  }
  if (pending.length === 0) return ok(name, 'up to date')
  const pendingText = `pending migrations: ${pending.join(', ')}`
  if (isHeld)
    return warning(name, `${pendingText}; an older otpd is running`, 'Restart the server with this otpd.')
  if (!migrate)
    return fault(name, `${pendingText}; automatic migration is off`, 'Migrate it: otpd migrate up')
  if (missingSpace !== null)
    return fault(
      name,
      `${pendingText}; the upgrade needs ${formatBytes(missingSpace.neededBytes)} of free space in ${missingSpace.folder}, and there are ${formatBytes(missingSpace.freeBytes)}`,
      'Make room on that disk first: older backups may lie elsewhere.',
    )
  return warning(name, pendingText, 'The next start backs up and migrates the database: otpd serve')
}
