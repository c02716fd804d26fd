import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findUnclear } from './plain-english.mjs'

const root = join(import.meta.dir, '../..')
const documents = [
  'README.md',
  'install.sh',
  '.ci/run',
  ...new Bun.Glob('.github/**/*.{md,yml}').scanSync({ cwd: root, dot: true }),
  ...new Bun.Glob('{src,cli,test}/**/*.{md,sh,c,py}').scanSync(root),
].toSorted()

/** Code, links and quoted output are not prose. */
const withoutCode = (text: string) => text.replaceAll(/```[\s\S]*?```|`[^`\n]*`|\]\([^)]*\)/g, '')

test.each(documents)('%s has no unclear wording', (path) => {
  const lines = withoutCode(readFileSync(join(root, path), 'utf8')).split('\n')
  const found = lines.flatMap((line) =>
    findUnclear(line, false).map(({ word, reason }) => `"${word}": ${reason} (${line.trim()})`),
  )
  expect(found).toEqual([])
})

test('the list finds what it names, and nothing in plain sentences', () => {
  expect(findUnclear(' What survives a kill.', true)).toHaveLength(1)
  expect(findUnclear(['Called by', 'whoever', 'holds it.'].join(' '), false)).toHaveLength(1)
  expect(findUnclear('Leases due deliveries; at most two per endpoint.', true)).toEqual([])
})
