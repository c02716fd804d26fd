import { dirname, join, normalize } from 'node:path'

const root = join(import.meta.dir, '../..')

/** Shared, because one for each of 2,000 files takes a third of the time to read them. */
const transpilers = {
  ts: new Bun.Transpiler({ loader: 'ts' }),
  tsx: new Bun.Transpiler({ loader: 'tsx' }),
}

/**
 * One import of a file. `target` is a path from the project root for the project's own files (`src/domain/otp/otp.ts`),
 * and the name of the package or module otherwise (`drizzle-orm`, `node:fs`).
 */
export type Import = { target: string; kind: 'static' | 'dynamic' | 'type' }

export type Source = { path: string; text: string; imports: Import[] }

/** Reads every TypeScript file below the folders, with its imports. */
export async function readSources(...folders: string[]): Promise<Source[]> {
  const paths = folders.flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync(root)])
  const read = async (path: string) => parseSource(path, await Bun.file(join(root, path)).text())
  return Promise.all(paths.toSorted().map(read))
}

/** Lists the files that match a glob, as sorted paths from the project root. */
export function listFiles(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync(root)].toSorted()
}

/** Lists the imports of a file. Bun's transpiler drops type imports, so those it leaves are needed at run time. */
export function parseSource(path: string, text: string): Source {
  const scanned = transpilers[path.endsWith('x') ? 'tsx' : 'ts'].scanImports(text)
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

/** Removes comments. Recognizes them as this project writes them; a comment behind code on its line stays. */
export function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
}

/** Maps each file to the files that it imports. `isCounted` chooses the imports; targets outside `sources` are left out. */
export function importGraph(
  sources: readonly Source[],
  isCounted: (path: string, one: Import) => boolean,
): Map<string, string[]> {
  const paths = new Set(sources.map(({ path }) => path))
  return new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.filter((one) => paths.has(one.target) && isCounted(path, one)).map(({ target }) => target),
    ]),
  )
}

/** Finds a cycle of the graph by depth-first search. Its first node is repeated at the end. */
export function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const finished = new Set<string>()

  function visit(node: string, visited: readonly string[]): string[] | undefined {
    const begin = visited.indexOf(node)
    if (begin >= 0) return [...visited.slice(begin), node]
    if (finished.has(node)) return undefined
    for (const next of graph.get(node) ?? []) {
      const cycle = visit(next, [...visited, node])
      if (cycle) return cycle
    }
    finished.add(node)
    return undefined
  }

  for (const node of graph.keys()) {
    const cycle = visit(node, [])
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
