import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')
const transpiler = new Bun.Transpiler({ loader: 'tsx' })

/** Lists every module that is loaded when the binary starts: our files by path, packages by name. */
function findStaticImports(entry: string, found = new Set<string>()) {
  if (found.has(entry)) return found
  found.add(entry)
  for (const { path, kind } of transpiler.scanImports(readFileSync(resolve(root, entry), 'utf8'))) {
    if (kind !== 'import-statement') continue
    if (!path.startsWith('.')) found.add(path)
    else if (/\.tsx?$/.test(path))
      findStaticImports(resolve(root, dirname(entry), path).slice(root.length + 1), found)
  }
  return found
}

const loaded = [...findStaticImports('cli/main.ts')]

test('a command loads no server code and no full-screen code before it needs it', () => {
  expect(loaded.filter((module) => /^src\/(?!shared\/)/.test(module))).toEqual([])
  expect(loaded.filter((module) => !/^(cli|src\/shared)\/|^node:/.test(module)).toSorted()).toEqual([
    'commander',
    'picocolors',
  ])
})

test('the environment is set before anything else is loaded', () => {
  expect(loaded[1]).toBe('cli/environment.ts')
})
