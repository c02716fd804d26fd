import { readdirSync, readFileSync } from 'node:fs'
import { join, parse } from 'node:path'

export type Migration = { name: string; sql: string }

/**
 * Reads the migrations of one database from `migrations/`, oldest first. Runs as a macro, when Bun transpiles or
 * bundles the caller, so the texts are compiled into the binary.
 *
 * @throws Error a file is not named `NNNN_words.sql`, or its number is missing, repeated or out of order
 */
export function readMigrations(dialect: 'sqlite' | 'postgres'): Migration[] {
  const folder = join(import.meta.dir, '../../../migrations', dialect)
  return readdirSync(folder)
    .toSorted()
    .map((file, index) => {
      const number = String(index + 1).padStart(4, '0')
      if (!new RegExp(`^${number}_[a-z0-9_]+\\.sql$`).test(file)) {
        const message = `migrations/${dialect}/${file} must be named ${number}_lower_case_words.sql`
        // Bun fails the build when a macro throws, but does not print the error.
        process.stderr.write(`${message}\n`)
        throw new Error(message)
      }
      return { name: parse(file).name, sql: readFileSync(join(folder, file), 'utf8') }
    })
}
