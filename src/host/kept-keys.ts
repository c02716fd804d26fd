import { masterKeyCheck } from '../domain/model/keys.ts'
import { listKeyChecks } from '../backups/folder.ts'
import { showTarget } from '../config/backup.ts'
import type { Config } from '../config/config.ts'
import { dataFiles } from '../store/data-dir/data-dir.ts'
import { listKeptKeys } from '../store/data-dir/master-key.ts'

/** A replaced master key that is kept in the data directory, with the names of backups that need it. */
export type HostKeptKey = { path: string; neededBy: string[] }

export type KeptKeysInspection = {
  /** Newest first. */
  keys: HostKeptKey[]
  /** Folders whose backups were read. */
  folders: string[]
  /** Bucket or folder of `backup.to` whose backups were not read; null without one. */
  unread: string | null
}

/** Inspects the replaced master keys without a call to a service. Never throws. */
export function inspectKeptKeys(
  { backup: { to } }: Pick<Config, 'backup'>,
  dataDir: string,
): KeptKeysInspection {
  const place = showTarget(to)
  const ownFolder = dataFiles(dataDir).backups
  const kept = listKeptKeys(dataDir)
  const elsewhere =
    to.kind === 'folder' && place !== null && place !== ownFolder ? listKeyChecks(place) : null
  const backups = [...(listKeyChecks(ownFolder) ?? []), ...(elsewhere ?? [])]
  return {
    keys: kept.map(({ path, key }) => {
      const own = masterKeyCheck(key)
      return { path, neededBy: backups.filter(({ checks }) => checks.includes(own)).map(({ name }) => name) }
    }),
    folders: [ownFolder, ...(elsewhere !== null && place !== null ? [place] : [])],
    unread: elsewhere === null && place !== ownFolder ? place : null,
  }
}
