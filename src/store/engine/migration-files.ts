import { readdirSync, readFileSync } from 'node:fs'
import { join, parse } from 'node:path'

export type Migration = { name: string; sql: string }

/**
 * Every file of `migrations/sqlite` and `migrations/postgres`, oldest first: adding a file to each folder registers a
 * migration. A released migration is never edited; its checksum is in every database. The executable has the values.
 *
 * @throws Error a file is not named `NNNN_words.sql`, or its number is missing, repeated or out of order
 */
export const sqliteMigrations = readMigrations('sqlite')
export const postgresMigrations = readMigrations('postgres')

function readMigrations(dialect: 'sqlite' | 'postgres'): Migration[] {
  const folder = join(import.meta.dir, '../../../migrations', dialect)
  return readdirSync(folder)
    .toSorted()
    .map((file, index) => {
      const number = String(index + 1).padStart(4, '0')
      if (!new RegExp(`^${number}_[a-z0-9_]+\\.sql$`).test(file))
        throw new Error(`migrations/${dialect}/${file} must be named ${number}_lower_case_words.sql`)
      return { name: parse(file).name, sql: readFileSync(join(folder, file), 'utf8') }
    })
}
