import { readdirSync } from 'node:fs'
import { join, parse } from 'node:path'

const files = readdirSync(join(import.meta.dir, '../../migrations/sqlite'))

/** Name of the newest migration. The executable has the value, so that it can be told without reading the migrations. */
export const newestMigration = parse(files.toSorted().at(-1) ?? '').name
