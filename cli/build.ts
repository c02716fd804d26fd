/**
 * Builds `dist/otpd`, one executable that embeds the program, Bun, the migrations and the pages.
 * Usage: `bun cli/build.ts [--target bun-linux-arm64] [--outfile FILE]`
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, parse, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { renderGuides } from './guides/render.ts'

const root = resolve(import.meta.dir, '..')
const { values } = parseArgs({
  options: { outfile: { type: 'string', default: resolve(root, 'dist/otpd') }, target: { type: 'string' } },
})
mkdirSync(dirname(values.outfile), { recursive: true })

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
  './src/store/files/integrity-worker.ts',
  'openid-client',
  'smpp',
]
const bundles = bundleNames.map((name) => Bun.resolveSync(name, root))

/** Path of a bundle inside the executable. */
const embeddedPath = (file: string) => `/$bunfs/root/${parse(file).name}.js`

const guides = await renderGuides()
const guideFolder = mkdtempSync(join(tmpdir(), 'otpd-guides-'))
for (const [name, text] of Object.entries(guides)) writeFileSync(join(guideFolder, name), text)

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
  define: { 'process.env.NODE_ENV': '"production"' },
  compile: {
    outfile: values.outfile,
    ...(values.target !== undefined && { target: requireTarget(values.target) }),
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
      name: 'without react-devtools',
      setup: (build) => {
        const path = resolve(root, 'cli/console/devtools-stub.ts')
        build.onResolve({ filter: /^react-devtools-core$/ }, () => ({ path }))
      },
    },
  ],
})

rmSync(guideFolder, { recursive: true })
for (const log of result.logs) process.stderr.write(`${String(log)}\n`)
const megabytes = (Bun.file(values.outfile).size / 1e6).toFixed(1)
process.stdout.write(`${values.outfile} (${megabytes} MB)\n`)

function requireTarget(target: string): Bun.Build.CompileTarget {
  if (isTarget(target)) return target
  throw new Error(
    `Unknown target ${target}. Use one like bun-linux-x64, bun-linux-arm64-musl or bun-darwin-arm64.`,
  )
}

function isTarget(target: string): target is Bun.Build.CompileTarget {
  return /^bun-(linux-(x64|arm64)(-musl)?|darwin-(x64|arm64))$/.test(target)
}
