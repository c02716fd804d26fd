import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { buildClient } from '../../cli/release/client.ts'
import { packForNpm } from '../../cli/release/npm.ts'
import { hostTarget } from '../../cli/release/targets.ts'
import { version } from '../../cli/version.ts'
import { binaryPath } from '../helpers/binary.ts'
import { startExternalProgram } from '../helpers/external-program.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, installFromNpm, run } from './tools.ts'

const root = resolve(import.meta.dir, '../..')

/** First file of a backend, with a use of each kind of type. */
const backend = `import { Otpd, OtpdError, WebhookVerifyError, type WebhookEvent } from 'otpd/client'

export async function verifyPhone(otp: Otpd, phone: string, code: string): Promise<boolean> {
  const { requestId } = await otp.send({ phone })
  const { verified } = await otp.check({ requestId, code })
  return verified
}

export async function readWebhook(otp: Otpd, body: string, headers: Headers): Promise<WebhookEvent | string> {
  try {
    return await otp.webhooks.verify(body, headers, 'whsec_')
  } catch (error) {
    if (error instanceof WebhookVerifyError || error instanceof OtpdError) return error.message
    throw error
  }
}

// @ts-expect-error: a number is no phone.
void new Otpd().send({ phone: 1 })
`

/** Compilers, and the options with which they find the types. */
const compilers = {
  'typescript-4.7': [['--module', 'commonjs', '--moduleResolution', 'node']],
  'typescript-5': [
    ['--module', 'commonjs', '--moduleResolution', 'node10'],
    ['--module', 'nodenext', '--moduleResolution', 'nodenext'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ],
}

/** Publishes the packages for npm to a registry, and installs them from there like a user. */
export const npmCheck: AcceptCheck = {
  name: 'npm',
  title: 'npx otpd and npm install otpd from a registry; types for TypeScript 4.7 and 5',
  needs: ['npm'],
  run: (print) =>
    inFolder(async (folder) => {
      const registry = await startRegistry(folder)
      try {
        const env = {
          HOME: folder,
          npm_config_registry: registry.url,
          npm_config_cache: join(folder, 'cache'),
        }
        await publish(folder, env)
        const [shown] = [JSON.parse(await run(folder, ['npm', 'view', 'otpd', '--json'], env))]
        print(
          `npm view: otpd ${shown.version}, ${shown.license}, node ${shown.engines.node}: ${shown.description}`,
        )

        const fresh = join(folder, 'fresh')
        mkdirSync(fresh)
        print(`npx: ${(await run(fresh, ['npx', '--yes', 'otpd', 'version'], env)).trim()}`)
        await run(fresh, ['npm', 'install', '--no-audit', '--no-fund', 'otpd'], env)
        print(`npm install: ${(await run(fresh, [join(fresh, 'node_modules/.bin/otpd'), 'version'])).trim()}`)
        const load = "import('otpd/client').then(({ Otpd }) => console.log(typeof Otpd))"
        print(`import: ${(await run(fresh, ['node', '-e', load])).trim()}`)
        await compile(folder, fresh, print)
      } finally {
        await registry.stop()
      }
    }),
}

/** Starts Verdaccio, which knows no other registry. */
async function startRegistry(folder: string) {
  const port = await findUnusedPort()
  // Verdaccio names a tag of node-fetch that the registry no longer has.
  const manifest = { private: true, type: 'module', overrides: { 'node-fetch': '2.7.0' } }
  // Not in the folder itself, whose package.json npm would take for that of the folders below.
  const tools = join(folder, 'tools')
  mkdirSync(tools)
  writeFileSync(join(tools, 'package.json'), JSON.stringify(manifest))
  const typescript = ['typescript-4.7@npm:typescript@4.7.4', 'typescript-5@npm:typescript@5.9.3']
  await installFromNpm(tools, 'verdaccio@6.8.0', ...typescript)
  const config = `storage: ${join(folder, 'storage')}
packages:
  '**': { access: $all, publish: $all }
max_body_size: 300mb
log: { type: stdout, level: http }
`
  writeFileSync(join(folder, 'config.yaml'), config)
  const listen = `127.0.0.1:${port}`
  const command = [
    'node',
    join(tools, 'node_modules/.bin/verdaccio'),
    '--config',
    'config.yaml',
    '--listen',
    listen,
  ]
  const program = await startExternalProgram(['env', '--chdir', folder, ...command], 'http address')
  return { url: `http://${listen}/`, stop: program.stop }
}

/** Publishes in the order that the guide names: the launcher last, because it names the others. */
async function publish(folder: string, env: Record<string, string>) {
  const target = hostTarget()
  if (target === undefined) throw new Error('There is no package for this machine.')
  const client = buildClient(root, join(folder, 'client'))
  const texts = [{ name: 'LICENSE', content: readFileSync(join(root, 'LICENSE')) }]
  const inputs = { root, version, seconds: 1_767_225_600 }
  const files = packForNpm(inputs, [{ target, binary: binaryPath }], client, texts)
  for (const { name, content } of files) writeFileSync(join(folder, name), content)
  // npm wants a token, and this registry takes any.
  const login = `--//${new URL(env['npm_config_registry'] ?? '').host}/:_authToken=any`
  for (const name of [`otpd-${target.name}-${version}.tgz`, `otpd-${version}.tgz`])
    await run(folder, ['npm', 'publish', '--access', 'public', login, name], env)
}

async function compile(folder: string, project: string, print: (line: string) => void) {
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  writeFileSync(join(project, 'backend.ts'), backend)
  const options = { noEmit: true, strict: true, target: 'es2020', lib: ['es2020', 'dom'], types: [] }
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: options, files: ['backend.ts'] }),
  )
  for (const [compiler, ways] of Object.entries(compilers))
    for (const way of ways) {
      await run(project, ['node', join(folder, 'tools/node_modules', compiler, 'bin/tsc'), '-p', '.', ...way])
      print(`${compiler} ${way.join(' ')}: types are right`)
    }
}
