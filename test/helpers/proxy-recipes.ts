import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runToEnd } from './binary.ts'
import { findProgram } from './external-program.ts'
import { findUnusedPort } from './unused-port.ts'
import { makeCertificate } from './webhook-receiver.ts'

const recipes = join(import.meta.dir, '../../.packaging/recipes')
const host = 'otp.example.com'

type Paths = { folder: string; certificate: string; key: string; both: string }
type ProxyRecipe = {
  name: 'nginx' | 'haproxy' | 'caddy'
  file: string
  /** Completes the recipe with what a whole configuration has. */
  complete: (recipe: string, port: number, paths: Paths) => string
  command: (program: string, file: string, folder: string) => string[]
}

export const proxyRecipes: readonly ProxyRecipe[] = [
  {
    name: 'nginx',
    file: 'nginx.conf',
    complete: (recipe, port, { folder, certificate, key }) => {
      const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      const server = recipe
        .replace('listen 443', `listen 127.0.0.1:${port}`)
        .replace('/etc/ssl/otp.example.com.pem', certificate)
        .replace('/etc/ssl/otp.example.com.key', key)
      const paths = folders.map((name) => `${name}_temp_path ${join(folder, name)};`).join('\n')
      // The workers of a master that is root would be another user, to whom the folder is closed.
      const user = process.getuid?.() === 0 ? 'user root;\n' : ''
      return `${user}pid ${folder}/pid;\nevents {}\nhttp {\naccess_log off;\n${paths}\n${server}}\n`
    },
    command: (program, file) => [program, '-e', 'stderr', '-c', file, '-g', 'daemon off;'],
  },
  {
    name: 'haproxy',
    file: 'haproxy.cfg',
    complete: (recipe, port, { both }) =>
      recipe
        .replace('bind :443', `bind 127.0.0.1:${port}`)
        .replace('/etc/haproxy/otp.example.com.pem', both)
        .replace('inter 1s', 'inter 100'),
    command: (program, file) => [program, '-db', '-f', file],
  },
  {
    name: 'caddy',
    file: 'Caddyfile',
    complete: (recipe, port, { certificate, key }) => {
      const options = '{\n\tadmin off\n\tauto_https disable_redirects\n}\n'
      const site = `https://${host}:${port} {\n\tbind 127.0.0.1\n\ttls ${certificate} ${key}\n`
      return options + recipe.replace(`${host} {\n`, site)
    },
    command: (program, file) => [program, 'run', '--adapter', 'caddyfile', '--config', file],
  },
]

export type ProxyRun = Awaited<ReturnType<typeof startProxyRecipe>>

/** Starts a proxy by its recipe on a free port, in front of a server on another one, and calls it with curl over HTTP/2. */
export async function startProxyRecipe(recipe: ProxyRecipe, backendPort: string) {
  const folder = mkdtempSync(join(tmpdir(), `otpd-${recipe.name}-`))
  const port = await findUnusedPort()
  const paths = {
    folder,
    certificate: join(folder, 'a.pem'),
    key: join(folder, 'a.key'),
    both: join(folder, 'b.pem'),
  }
  const { key, cert } = makeCertificate(host)
  writeFileSync(paths.certificate, cert)
  writeFileSync(paths.key, key)
  writeFileSync(paths.both, cert + key)
  mkdirSync(join(folder, 'home'))
  const text = readFileSync(join(recipes, recipe.file), 'utf8').replaceAll(
    '127.0.0.1:8080',
    `127.0.0.1:${backendPort}`,
  )
  const file = join(folder, recipe.file)
  writeFileSync(file, recipe.complete(text, port, paths))
  const setpriv = findProgram('setpriv')
  const command = recipe.command(findProgram(recipe.name) ?? '', file, folder)
  const child = Bun.spawn([...(setpriv === null ? [] : [setpriv, '--pdeathsig', 'KILL', '--']), ...command], {
    env: { PATH: process.env.PATH ?? '', HOME: join(folder, 'home') },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: Bun.file(join(folder, 'log')),
  })
  const options = ['--silent', '--show-error', '--http2', '--cacert', paths.certificate]
  const curl = (path: string, ...more: string[]) => [
    'curl',
    ...options,
    '--resolve',
    `${host}:${port}:127.0.0.1`,
    ...more,
    `https://${host}:${port}${path}`,
  ]
  const isUp = async () => (await runToEnd(curl('/v1/health', '--fail'), {})).exitCode === 0
  while (!(await isUp())) {
    if (child.exitCode !== null)
      throw new Error(
        `${recipe.name} ended with ${child.exitCode}: ${readFileSync(join(folder, 'log'), 'utf8')}`,
      )
    await Bun.sleep(50)
  }
  return {
    curl,
    async stop() {
      // Killed, nginx would leave its workers behind.
      child.kill()
      await child.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
