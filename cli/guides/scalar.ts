import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { renderReferencePage } from './page.ts'

const folder = join(import.meta.dir, '../../node_modules/@scalar/api-reference/dist/browser')
const entry = 'standalone.esm.js'

/** Placeholder of a credential: "ALL YOUR BASE ARE BELONG TO US" in base64. */
const placeholder = 'QUxMIFlPVVIgQkFTRSBBUkUgQkVMT05HIFRPIFVT'

/**
 * Returns the page of the API reference and its scripts, in Scalar's own split: a browser loads 2.8 of 4.2 MB, and the
 * rest once the reader tries a call.
 *
 * @throws Error if another version of Scalar has another placeholder
 */
export function scalarFiles(): Record<string, string> {
  // The assistant is switched off.
  const chunks = [...new Bun.Glob('chunks/*.js').scanSync(folder)].filter((name) => !name.includes('Agent'))
  const scripts = new Map([entry, ...chunks.toSorted()].map((path) => [basename(path), readScript(path)]))
  if (![...scripts.values()].some((text) => text.includes(placeholder)))
    throw new Error('Scalar has another placeholder for credentials: see cli/guides/scalar.ts.')
  return {
    'reference.html': renderReferencePage([entry, ...staticImports(scripts, entry)]),
    'reference.js': readFileSync(join(import.meta.dir, 'site/reference.js'), 'utf8'),
    ...Object.fromEntries([...scripts].map(([name, text]) => [name, text.replaceAll(placeholder, 'value')])),
  }
}

/** Reads a script, to be served from the same folder as all others. */
const readScript = (path: string) =>
  readFileSync(join(folder, path), 'utf8')
    .replaceAll(/(["'`])\.\/chunks\//g, '$1./')
    .replaceAll(/(["'`])\.\.\/(?=standalone)/g, '$1./')
    .replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n')

/** Lists the scripts that one imports, directly and indirectly. */
function staticImports(
  scripts: ReadonlyMap<string, string>,
  name: string,
  found = new Set<string>(),
): string[] {
  const imports = /(?:\bfrom|\bimport)\s*["'`]\.\/([^"'`]+\.js)["'`]/g
  for (const [, imported = ''] of (scripts.get(name) ?? '').matchAll(imports)) {
    if (found.has(imported)) continue
    found.add(imported)
    staticImports(scripts, imported, found)
  }
  return [...found]
}
