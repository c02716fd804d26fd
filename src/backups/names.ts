import { fileTime } from '../store/data-dir/data-dir.ts'

/** Times in the names of backups: ISO 8601 with characters that every file system and service takes. */
const stampPattern = String.raw`\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-\d{3}Z`
const filePattern = new RegExp(`^otpd-(${stampPattern})\\.db$`)
const copyPattern = new RegExp(`^before-(?:migration|restore)-(${stampPattern})\\.db$`)
const objectPattern = new RegExp(`^otpd-(${stampPattern})\\.db\\.sealed$`)
const draftPattern = new RegExp(`^otpd-${stampPattern}\\.db\\.[0-9a-f-]{36}\\.part$`)

/** Name of a backup that otpd chooses. */
export const backupFileName = (at: number) => `otpd-${fileTime(at)}.db`

/** Name of a sealed backup in a bucket. */
export const sealedName = (at: number) => `${backupFileName(at)}.sealed`

/** Name of the note next to a sealed backup. */
export const noteName = (name: string) => `${name}.verified`

/** Reads the time from the name of a backup that otpd chose; undefined for any other name. */
export const timeInFileName = (name: string) => parseStamp(filePattern.exec(name)?.[1])

/** As `timeInFileName`, of the copy that an upgrade makes, or of the database that a restore replaced. */
export const timeInCopyName = (name: string) => parseStamp(copyPattern.exec(name)?.[1])

/** As `timeInFileName`, of a sealed backup. */
export const timeInSealedName = (name: string) => parseStamp(objectPattern.exec(name)?.[1])

/** Tells whether a file is the draft of a backup, which a killed process leaves. */
export const isDraftName = (name: string) => draftPattern.test(name)

function parseStamp(stamp: string | undefined): number | undefined {
  if (stamp === undefined) return undefined
  const at = Date.parse(stamp.replace(/T(\d{2})-(\d{2})-(\d{2})-/, 'T$1:$2:$3.'))
  return Number.isNaN(at) ? undefined : at
}
