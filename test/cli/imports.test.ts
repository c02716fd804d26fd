import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')
const transpiler = new Bun.Transpiler({ loader: 'tsx' })

/** Files that begin a bundle of their own inside the executable. */
const bundles = new Set(
  [...readFileSync(resolve(root, 'cli/build.ts'), 'utf8').matchAll(/^ {2}'\.\/(\S+\.tsx?)',$/gm)].map(
    ([, file]) => file,
  ),
)

/**
 * Lists modules that a file imports, and those that these import: our files by path, packages by name.
 *
 * @param isFollowed whether our files that are imported on demand count
 */
function findImports(entry: string, isFollowed: (file: string) => boolean, found = new Set<string>()) {
  if (found.has(entry)) return found
  found.add(entry)
  for (const { path, kind } of transpiler.scanImports(readFileSync(resolve(root, entry), 'utf8'))) {
    const isOurs = path.startsWith('.')
    const file = isOurs ? resolve(root, dirname(entry), path).slice(root.length + 1) : path
    if (kind !== 'import-statement' && !(isOurs && isFollowed(file))) continue
    if (!isOurs) found.add(path)
    else if (/\.tsx?$/.test(path)) findImports(file, isFollowed, found)
  }
  return found
}

/** Modules that are loaded when the binary starts. */
const loaded = [...findImports('cli/main.ts', () => false)]

test('a command loads no server code and no full-screen code before it needs it', () => {
  expect(loaded.filter((module) => /^src\/(?!shared\/)/.test(module))).toEqual([])
  expect(loaded.filter((module) => !/^(cli|src\/shared)\/|^node:/.test(module)).toSorted()).toEqual([
    'commander',
    'picocolors',
  ])
})

// They took a quarter of the start of every command. The bundler hoists imports, also those of files that are imported on
// demand: such a file loads these with `import()`, or uses what Bun has instead.
test('no command loads the cryptography, the HTTP client or the compression of Node before it needs them', () => {
  expect(bundles.size).toBeGreaterThan(5)
  const bundled = [...findImports('cli/main.ts', (file) => !bundles.has(file))]
  expect(bundled).toContain('cli/upgrade/signature.ts')
  expect(bundled.filter((module) => /^node:(crypto|https?|http2|tls|zlib)$/.test(module))).toEqual([])
})

test('the environment is set before anything else is loaded', () => {
  expect(loaded[1]).toBe('cli/environment.ts')
})
