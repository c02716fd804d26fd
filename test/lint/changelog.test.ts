import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')

test('the newest version of the changelog that migrates names the newest migration', () => {
  const changelog = readFileSync(join(root, '.github/CHANGELOG.md'), 'utf8')
  const newest = readdirSync(join(root, 'migrations/sqlite')).toSorted().at(-1)?.slice(0, 4)
  expect(/^Migrates: \d{4} to (\d{4})/m.exec(changelog)?.[1]).toBe(newest ?? 'none')
})
