import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sabotages } from './sabotages.ts'

test('the sources have the text of each sabotage once', () => {
  const outdated = sabotages.filter(({ file, from }) => {
    const source = readFileSync(join(import.meta.dir, '../..', file), 'utf8')
    return source.split(from).length !== 2
  })
  expect(outdated.map(({ file, name }) => `${file}: ${name}`)).toEqual([])
})
