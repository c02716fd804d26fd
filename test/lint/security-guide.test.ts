import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')
const guide = readFileSync(join(root, 'src/docs/security.md'), 'utf8')
const controls = guide
  .slice(guide.indexOf('## Controls'))
  .split('\n')
  .filter((line) => /^\| \d/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))

test('every control of the security guide names a test that exists', () => {
  for (const [, number, , source, state, tests = ''] of controls) {
    const files = [...tests.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file)
    const missing = files.filter((file) => !existsSync(join(root, file)))
    expect({ number, missing }).toEqual({ number, missing: [] })
    expect(files.length).toBeGreaterThan(0)
    expect(source).toMatch(/^(ASVS|NIST|RFC) /)
    expect(state).toMatch(/^(met$|partly: )/)
  }
})

test('the controls are numbered', () => {
  expect(controls.length).toBeGreaterThan(0)
  expect(controls.map(([, number]) => Number(number))).toEqual(controls.map((_, index) => index + 1))
})
