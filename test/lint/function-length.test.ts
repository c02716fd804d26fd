import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-lint-'))
  const jsPlugins = [join(root, 'test/lint/function-length.mjs')]
  const config = { categories: {}, jsPlugins, rules: { 'otpd-functions/length': 'error' } }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const statements = (count: number) => '  work()\n'.repeat(count)

/** @returns the lengths that the rule reports */
async function lint(code: string): Promise<number[]> {
  const file = join(folder, 'code.ts')
  writeFileSync(file, code)
  const oxlint = join(root, 'node_modules/.bin/oxlint')
  const run = Bun.spawn([oxlint, '-c', join(folder, 'config.json'), file], { stdout: 'pipe', cwd: folder })
  return [...(await new Response(run.stdout).text()).matchAll(/(\d+) lines of code/g)].map(([, lines]) =>
    Number(lines),
  )
}

test('a function has at most 70 lines of code, with those around them', async () => {
  expect(await lint(`function fits() {\n${statements(68)}}\n`)).toEqual([])
  expect(await lint(`function long() {\n${statements(69)}}\n`)).toEqual([71])
})

test('comments, empty lines and named functions inside do not count', async () => {
  const remarks = '  // why\n\n'.repeat(50)
  const inner = `  function inner() {\n${statements(60)}  }\n`
  const method = `  return {\n    method() {\n${statements(60)}    },\n  }\n`
  expect(await lint(`function create() {\n${remarks}${inner}${method}${statements(50)}}\n`)).toEqual([])
})

test('callbacks count as part of the function that passes them', async () => {
  expect(await lint(`function long() {\n  each(() => {\n${statements(70)}  })\n}\n`)).toEqual([72, 74])
})
