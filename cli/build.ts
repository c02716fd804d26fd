/**
 * Builds `dist/otpd`, one executable that embeds the program, Bun, the migrations and the pages.
 * Usage: `bun cli/build.ts [--target linux-arm64] [--out FOLDER] [--metafile FILE]`
 *
 * The same sources give the same bytes in any folder, at any time. The executable contains its own base name, which is
 * therefore always `otpd`: another target is built into a folder of its own, like `dist/linux-arm64/otpd`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, parse, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { renderGuides } from './guides/render.ts'
import { readCommit, readCommitTime } from './release/git.ts'
import { readReleaseKey, readReleaseUrl } from './release/install-script.ts'
import { findTarget, hostTarget, targetNames, type Target } from './release/targets.ts'

const root = resolve(import.meta.dir, '..')
const { values } = parseArgs({
  options: { target: { type: 'string' }, out: { type: 'string' }, metafile: { type: 'string' } },
})
const host = hostTarget()
const target = values.target === undefined ? host : requireTarget(values.target)
const folder = resolve(values.out ?? join(root, 'dist', values.target ?? ''))
const outfile = join(folder, 'otpd')
mkdirSync(folder, { recursive: true })

/**
 * Separate bundles inside the executable, loaded on demand: the main bundle is in memory as a whole, and most runs
 * need none of these. `errors.ts` is one so that console and commands share one class CliError (`instanceof`).
 */
const bundleNames = [
  './cli/console/run-console.tsx',
  './cli/terminal/errors.ts',
  './cli/terminal/progress-worker.ts',
  './src/docs/search-guides.ts',
  './src/server/bundle.ts',
  './src/server/upgrade-worker.ts',
  './src/store/data-dir/integrity-worker.ts',
  './src/tls/tls.ts',
  'openid-client',
  'smpp',
]
const bundles = bundleNames.map((name) => Bun.resolveSync(name, root))

/** Path of a bundle inside the executable. */
const embeddedPath = (file: string) => `/$bunfs/root/${parse(file).name}.js`

const guides = await renderGuides()
// Always the same path, because it is in the executable.
const guideFolder = join(root, 'dist/.guides')
mkdirSync(guideFolder, { recursive: true })
for (const [name, text] of Object.entries(guides)) {
  const path = join(guideFolder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, Bun.gzipSync(text, { level: 9 }))
}

/** Module in the place of `src/docs/guide-files.ts`: the guides are files of the executable, and not in memory. */
const guideModule = () => {
  const names = Object.keys(guides)
  const imports = names.map(
    (name, index) =>
      `import file${index} from ${JSON.stringify(join(guideFolder, name))} with { type: 'file' }`,
  )
  const files = names.map((name, index) => `${JSON.stringify(name)}: Bun.file(file${index})`)
  return `${imports.join('\n')}\nexport const loadGuideFiles = async () => ({ ${files.join(', ')} })`
}

/** Modules whose constants are computed here, from files that the executable does not have. */
const computedModules = [
  'src/http/page/assets.ts',
  'src/shared/newest-migration.ts',
  'src/store/engine/migration-files.ts',
]

const computedModule = async (path: string) => {
  const constants: Record<string, unknown> = await import(path)
  return Object.entries(constants)
    .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)}`)
    .join('\n')
}

const result = await Bun.build({
  entrypoints: [resolve(root, 'cli/main.ts'), ...bundles],
  root,
  // Flat: a worker is resolved next to the file that starts it.
  naming: { entry: '[name].[ext]' },
  target: 'bun',
  // Bytecode halves the startup time. It needs ESM here because our libraries use top-level await.
  format: 'esm',
  bytecode: true,
  // Never minified: Elysia reads the source of handlers to learn what they use, and misses `headers` in minified code.
  // Never split: chunks were initialised in the wrong order.
  minify: false,
  splitting: false,
  define: {
    'process.env.NODE_ENV': '"production"',
    'process.env.OTPD_BUILD_COMMIT': JSON.stringify(readCommit(root) ?? ''),
    'process.env.OTPD_BUILD_DATE': JSON.stringify(readCommitTime(root)?.slice(0, 10) ?? ''),
    'process.env.OTPD_BUILD_TARGET': JSON.stringify(target?.name ?? ''),
    'process.env.OTPD_BUILD_RELEASE_KEY': JSON.stringify(readReleaseKey(root)),
    'process.env.OTPD_BUILD_RELEASE_URL': JSON.stringify(readReleaseUrl(root)),
  },
  metafile: values.metafile !== undefined,
  compile: {
    outfile,
    // Without a target Bun takes its own executable, which is on this machine already.
    ...(target !== undefined && target !== host && { target: compileTarget(target) }),
    // Otherwise the program would load .env and bunfig.toml, and run its preloads, from the working directory.
    autoloadDotenv: false,
    autoloadBunfig: false,
  },
  plugins: [
    {
      name: 'separate bundles',
      setup: (build) => {
        const nameEndings = bundleNames.map((name) => RegExp.escape(basename(name)))
        const filter = new RegExp(`(^|/)(${nameEndings.join('|')})$`)
        build.onResolve({ filter }, ({ path, importer, kind }) => {
          if (kind === 'entry-point-build') return undefined
          const file = Bun.resolveSync(path, dirname(importer))
          return bundles.includes(file) ? { path: embeddedPath(file), external: true } : undefined
        })
      },
    },
    {
      name: 'guides',
      setup: (build) => {
        build.onLoad({ filter: /src\/docs\/guide-files\.ts$/ }, () => ({
          contents: guideModule(),
          loader: 'js',
        }))
      },
    },
    {
      name: 'computed constants',
      setup: (build) => {
        const filter = new RegExp(`/(${computedModules.map((path) => RegExp.escape(path)).join('|')})$`)
        build.onLoad({ filter }, async ({ path }) => ({ contents: await computedModule(path), loader: 'js' }))
      },
    },
    {
      name: 'without react-devtools',
      setup: (build) => {
        const path = resolve(root, 'cli/console/devtools-stub.ts')
        build.onResolve({ filter: /^react-devtools-core$/ }, () => ({ path }))
      },
    },
  ],
})

for (const log of result.logs) process.stderr.write(`${String(log)}\n`)
if (values.metafile !== undefined) writeFileSync(values.metafile, JSON.stringify(result.metafile))
const megabytes = (Bun.file(outfile).size / 1e6).toFixed(1)
process.stdout.write(`${outfile} (${megabytes} MB)\n`)

function requireTarget(name: string): Target {
  const found = findTarget(name)
  if (found) return found
  process.stderr.write(`Unknown target ${name}. Use one of: ${targetNames.join(', ')}.\n`)
  process.exit(2)
}

function compileTarget({ os, arch, isMusl }: Target): Bun.Build.CompileTarget {
  if (os === 'darwin') return `bun-darwin-${arch}`
  return isMusl ? `bun-linux-${arch}-musl` : `bun-linux-${arch}`
}
