/**
 * Builds `dist/client`, the library `otpd/client` for backends: a package of one module without imports, and its types.
 * Usage: `bun cli/build-client.ts [--outdir FOLDER]`
 */
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import project from '../package.json'

const root = resolve(import.meta.dir, '..')
const entry = resolve(root, 'src/client/index.ts')
const { values } = parseArgs({
  options: { outdir: { type: 'string', default: resolve(root, 'dist/client') } },
})
rmSync(values.outdir, { recursive: true, force: true })

// Not minified: its users read it in stack traces. The target has neither Bun's nor Node.js' modules.
await Bun.build({ entrypoints: [entry], outdir: values.outdir, target: 'browser', format: 'esm' })
// A package of its own: backends install the folder, and do not get the dependencies of the server.
const { version, description, license, engines } = project
const manifest = {
  name: 'otpd',
  version,
  description,
  license,
  ...('repository' in project && { repository: project.repository }),
  keywords: ['otp', 'one-time passcode', 'sms', 'phone verification', '2fa', 'self-hosted'],
  engines,
  type: 'module',
  sideEffects: false,
  exports: {
    './client': { types: './index.d.ts', default: './index.js' },
    './package.json': './package.json',
  },
  // For TypeScript with moduleResolution node10, which does not read exports.
  typesVersions: { '*': { client: ['./index.d.ts'] } },
}
writeFileSync(resolve(values.outdir, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
for (const [from, name] of [
  ['.packaging/npm/README.md', 'README.md'],
  ['LICENSE', 'LICENSE'],
] as const)
  copyFileSync(resolve(root, from), resolve(values.outdir, name))
const options =
  '--ignoreConfig --declaration --emitDeclarationOnly --rewriteRelativeImportExtensions --strict --skipLibCheck --target ESNext --module NodeNext --lib ESNext,DOM,DOM.Iterable --types bun-types'
const compiler = resolve(root, 'node_modules/typescript/bin/tsc')
const types = Bun.spawnSync(
  [process.execPath, compiler, entry, '--outDir', values.outdir, ...options.split(' ')],
  { cwd: root, stdout: 'inherit', stderr: 'inherit' },
)
// The compiler keeps the endings of the sources, which readers of types do not have.
for (const name of readdirSync(values.outdir).filter((file) => file.endsWith('.d.ts'))) {
  const path = resolve(values.outdir, name)
  const text = readFileSync(path, 'utf8').replaceAll(/(from '\.\/\w+)\.ts'/g, "$1.js'")
  writeFileSync(path, text)
}
process.exit(types.exitCode)
