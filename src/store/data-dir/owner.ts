import { lchownSync, lstatSync, readdirSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { dataFiles } from './data-dir.ts'

/**
 * Gives what root has made in a data directory to the owner of the directory: the server, which runs as that user, could
 * not open a restored database or write next to a backup otherwise. Does nothing for other users.
 */
export function giveToOwner(dataDir: string): void {
  if (process.getuid?.() !== 0) return
  const owner = statsOf(dataDir)
  if (!owner || owner.uid === 0) return
  const { backups, tls } = dataFiles(dataDir)
  for (const folder of [dataDir, backups, tls]) {
    if (!statsOf(folder)?.isDirectory()) continue
    for (const name of readdirSync(folder)) {
      const path = join(folder, name)
      const stats = statsOf(path)
      // A link may lead to a file of root elsewhere.
      const isOwn = stats && (stats.isDirectory() || (stats.isFile() && stats.nlink === 1))
      if (isOwn && stats.uid === 0) lchownSync(path, owner.uid, owner.gid)
    }
  }
}

/** Undefined where nothing can be, too, such as at a path that is too long. */
function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}
