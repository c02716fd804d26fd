import { createHash } from 'node:crypto'
import { Database as SqliteConnection } from 'bun:sqlite'
import { sqliteMigrations } from '../engine/migration-files.ts'
import { MigrationError } from '../engine/migrations.ts'
import { applyMigrations, readAppliedMigrations } from '../sqlite/migrate.ts'

/** Tables, indexes, triggers or views are not those of otpd. */
export class SchemaError extends MigrationError {}

type SchemaEntry = { type: string; name: string; sql: string | null }

/** Tables that SQLite (`ANALYZE`) and Litestream keep in a database. No statement of otpd touches them. */
const othersTables: readonly string[] = [
  'sqlite_sequence',
  'sqlite_stat1',
  'sqlite_stat4',
  '_litestream_seq',
  '_litestream_lock',
]

/**
 * Requires that the tables, indexes, triggers and views of a database are those that its migrations make. A planted
 * trigger could switch off a limit and no other check would notice.
 *
 * @throws SchemaError names what is foreign, missing or changed
 */
export function requireOwnSchema(connection: SqliteConnection): void {
  const applied = readAppliedMigrations(connection).length
  if (applied === 0) return
  const actual = readSchema(connection)
  // Almost every start: making the expected schema would take a fifth of it.
  if (applied === sqliteMigrations.length && digestOf(actual) === newestSchemaDigest) return
  const expected = readSchema(expectedSchema(applied))
  for (const [key, { type, name, sql }] of actual) {
    if (isOthers({ type, name })) continue
    const own = expected.get(key)
    if (own === undefined) throw schemaError(`a ${type} that otpd did not make: ${name}`)
    if (normalized(own.sql) !== normalized(sql)) throw schemaError(`a changed ${type}: ${name}`)
  }
  for (const [key, { type, name }] of expected) {
    if (!actual.has(key)) throw schemaError(`no ${type} ${name}`)
  }
}

const isOthers = ({ type, name }: Pick<SchemaEntry, 'type' | 'name'>) =>
  type === 'table' && othersTables.includes(name)

/** Digest of the schema that all migrations make. A test tells the right one when a migration is added. */
export const newestSchemaDigest = 'pQsso0Zh4_t1woEFPvpVgkEx0P3EGDhKQxlutGocNtM'

/** Returns the digest of a schema, without the tables of others. */
function digestOf(schema: ReadonlyMap<string, SchemaEntry>): string {
  const hash = createHash('sha256')
  for (const [key, entry] of [...schema].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    if (!isOthers(entry)) hash.update(JSON.stringify([key, normalized(entry.sql)]))
  return hash.digest('base64url')
}

/** Returns the digest of the schema that all migrations make. */
export const makeSchemaDigest = (): string => digestOf(readSchema(expectedSchema(sqliteMigrations.length)))

/** Names of schema objects are not ours to trust: a line break or an escape sequence must not reach the terminal. */
const schemaError = (fault: string) =>
  new SchemaError(
    `the database has ${fault.replaceAll(/[^\x20-\x7e]/g, '?')}`,
    'The file was changed outside of otpd. Find out how, and restore a backup from before. Nothing was changed.',
  )

function readSchema(connection: SqliteConnection): Map<string, SchemaEntry> {
  const rows = connection.query<SchemaEntry, []>('select type, name, sql from sqlite_schema').all()
  return new Map(rows.map((row) => [`${row.type} ${row.name}`, row]))
}

/** `alter table` rewrites statements, with quotes and spaces that depend on the version of SQLite. */
const normalized = (sql: string | null) => sql?.replaceAll('"', '').replaceAll(/\s+/g, ' ').toLowerCase()

const schemas = new Map<number, SqliteConnection>()

/** Makes an empty database with the first migrations. */
function expectedSchema(migrations: number): SqliteConnection {
  const made = schemas.get(migrations)
  if (made) return made
  const connection = new SqliteConnection(':memory:')
  applyMigrations(connection, sqliteMigrations.slice(0, migrations), 0)
  schemas.set(migrations, connection)
  return connection
}
