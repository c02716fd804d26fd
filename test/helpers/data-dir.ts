import { mkdirSync, readFileSync, writeFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase } from '../../src/store/data-dir/create-database.ts'
import { hasDatabase } from '../../src/store/data-dir/missing-database.ts'

type NewFile = { name: string; content: Uint8Array }

/** Files of the first data directory of each master key. */
const newFiles = new Map<string, NewFile[]>()

/**
 * Creates the database of a data directory that has none, and its master key unless it is configured. The files are those
 * that `createDatabase` made for the first directory, because migrating each takes longer than most tests.
 *
 * @param masterKey configured master key; by default the directory has one
 */
export function createTestDatabase(dataDir: string, masterKey: Uint8Array | null = null): void {
  if (hasDatabase(dataDir)) return
  mkdirSync(dataDir, { recursive: true })
  const key = masterKey?.toHex() ?? 'own'
  const files = newFiles.get(key)
  if (files !== undefined) {
    for (const { name, content } of files) writeFileSync(join(dataDir, name), content, { mode: 0o600 })
    return
  }
  const before = readdirSync(dataDir)
  createDatabase(dataDir, { configured: masterKey, isForced: false, now: 0 })
  const created = readdirSync(dataDir).filter((name) => !before.includes(name))
  newFiles.set(
    key,
    created.map((name) => ({ name, content: readFileSync(join(dataDir, name)) })),
  )
}
