/**
 * Builds `dist/client`, the library `otpd/client` for backends: a package of one module without imports, and its types.
 * Usage: `bun cli/build-client.ts [--outdir FOLDER]`
 */
import { rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { version } from '../package.json'

const root = resolve(import.meta.dir, '..')
const entry = resolve(root, 'src/client/index.ts')
const { values } = parseArgs({
  options: { outdir: { type: 'string', default: resolve(root, 'dist/client') } },
})
rmSync(values.outdir, { recursive: true, force: true })

// Not minified: its users read it in stack traces. The target has neither Bun's nor Node.js' modules.
await Bun.build({ entrypoints: [entry], outdir: values.outdir, target: 'browser', format: 'esm' })
// A package of its own: backends install the folder, and do not get the dependencies of the server.
const manifest = {
  name: 'otpd',
  version,
  type: 'module',
  exports: { './client': { types: './index.d.ts', default: './index.js' } },
}
writeFileSync(resolve(values.outdir, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
const options =
  '--ignoreConfig --declaration --emitDeclarationOnly --rewriteRelativeImportExtensions --strict --skipLibCheck --target ESNext --module NodeNext --lib ESNext,DOM,DOM.Iterable --types bun-types'
const compiler = resolve(root, 'node_modules/typescript/bin/tsc')
const types = Bun.spawnSync(
  [process.execPath, compiler, entry, '--outDir', values.outdir, ...options.split(' ')],
  { cwd: root, stdout: 'inherit', stderr: 'inherit' },
)
process.exit(types.exitCode)
