import { readdirSync } from 'node:fs'
import { join, parse } from 'node:path'

/** Names the newest migration. Runs as a macro, so that the executable contains the name and not the folder. */
export function newestMigration(): string {
  const names = readdirSync(join(import.meta.dir, '../../migrations/sqlite')).toSorted()
  return parse(names.at(-1) ?? '').name
}
