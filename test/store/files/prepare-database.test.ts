import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dataFiles, StartRefused } from '../../../src/store/files/data-dir.ts'
import { prepareDatabase } from '../../../src/store/files/prepare-database.ts'

const options = { masterKey: new Uint8Array(32).fill(1), migrate: true, now: 0 }
let dataDir: string

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'otpd-prepare-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

test('a first start that a disk error interrupts does not block later ones', () => {
  const { database } = dataFiles(dataDir)
  // A directory at the path of the journal makes SQLite's first write fail.
  mkdirSync(`${database}-journal`)
  expect(() => prepareDatabase(dataDir, options)).toThrow(StartRefused)
  expect(statSync(database).mode & 0o777).toBe(0o600)
  rmdirSync(`${database}-journal`)
  expect(prepareDatabase(dataDir, options)).toEqual({ migrated: [], backup: undefined })
})
