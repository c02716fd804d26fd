import { dirname, join, normalize } from 'node:path'

const root = join(import.meta.dir, '../..')

/**
 * One import of a file. `target` is a path from the top of the project for our own files (`src/domain/otp/otp.ts`), the
 * package or module otherwise (`drizzle-orm`, `node:fs`).
 */
export type Import = { target: string; kind: 'static' | 'dynamic' | 'type' }

export type Source = { path: string; text: string; imports: Import[] }

/** Every TypeScript file below the folders, with its imports. */
export async function readSources(...folders: string[]): Promise<Source[]> {
  const paths = folders.flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync(root)])
  const read = async (path: string) => parseSource(path, await Bun.file(join(root, path)).text())
  return Promise.all(paths.toSorted().map(read))
}

export function listFiles(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync(root)].toSorted()
}

/** Bun's transpiler drops imports that only name types, so what it leaves is what runs. */
export function parseSource(path: string, text: string): Source {
  const scanned = new Bun.Transpiler({ loader: path.endsWith('x') ? 'tsx' : 'ts' }).scanImports(text)
  const imports = new Map<string, Import>()
  for (const { path: name, kind } of scanned) {
    const target = resolveImport(path, name)
    if (imports.get(target)?.kind !== 'static') {
      imports.set(target, { target, kind: kind === 'dynamic-import' ? 'dynamic' : 'static' })
    }
  }
  const importPattern =
    /^\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s)?['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gm
  for (const match of text.matchAll(importPattern)) {
    const target = resolveImport(path, match[1] ?? match[2] ?? '')
    if (!imports.has(target)) imports.set(target, { target, kind: 'type' })
  }
  return { path, text, imports: [...imports.values()] }
}

/** The text without comments, for rules about code. Good enough for our own style, not for every program. */
export function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
}

/** A chain of files that import one another in a ring at run time, or undefined. */
export function findCycle(sources: readonly Source[]): string[] | undefined {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  const finished = new Set<string>()

  function visit(path: string, visited: readonly string[]): string[] | undefined {
    const begin = visited.indexOf(path)
    if (begin >= 0) return [...visited.slice(begin), path]
    if (finished.has(path)) return undefined
    for (const { target, kind } of byPath.get(path)?.imports ?? []) {
      const cycle = kind === 'static' ? visit(target, [...visited, path]) : undefined
      if (cycle) return cycle
    }
    finished.add(path)
    return undefined
  }

  for (const { path } of sources) {
    const cycle = visit(path, [])
    if (cycle) return cycle
  }
  return undefined
}

function resolveImport(from: string, name: string): string {
  if (name.startsWith('.')) return normalize(join(dirname(from), name))
  if (name.includes(':')) return name
  return name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
}
