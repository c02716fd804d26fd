import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { packArchive } from '../../cli/release/archive.ts'
import { hostTarget } from '../../cli/release/targets.ts'
import { version } from '../../cli/version.ts'
import { collectOutput } from '../helpers/binary.ts'
import { sha256 } from '../helpers/install-script.ts'
import { startPebble } from '../helpers/pebble.ts'
import { listAt, textAt, valueAt, type Json } from '../upgrade/json.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, run } from './tools.ts'

const checkout = resolve(import.meta.dir, '../..')
const domain = 'otp.example.com'
const old = '0.1.0'
const phone = '+15125550101'

/** Installs otpd on a bare Debian without Node, serves HTTPS, upgrades from the first release, and goes back. */
export const firstDay: AcceptCheck = {
  name: 'first-day',
  title: `a bare machine installs ${old}, upgrades, answers HTTPS on port 443, and goes back`,
  needs: ['git', 'npm', 'mmdebstrap', 'unshare', 'pebble'],
  run: (print) =>
    inFolder(async (folder) => {
      const root = join(folder, 'machine')
      await run(folder, [
        'mmdebstrap',
        '--quiet',
        '--variant=minbase',
        '--include=curl,ca-certificates,openssh-client',
        'bookworm',
        root,
      ])
      const files = await publishReleases(folder)
      const server = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        async fetch({ url }) {
          const file = Bun.file(join(files, new URL(url).pathname))
          return (await file.exists()) ? new Response(file) : new Response(null, { status: 404 })
        },
      })
      const pebble = await startPebble(join(folder, 'pebble'), { httpPort: 80 })
      try {
        writeFileSync(join(root, 'etc/pebble.pem'), readFileSync(pebble.caFile))
        writeFileSync(join(root, 'etc/issuer.pem'), pebble.root)
        const machine = createMachine(root, print)
        try {
          await followFirstDay(machine, `http://127.0.0.1:${server.port}`, pebble.url)
        } finally {
          machine.stop()
        }
      } finally {
        await pebble.stop()
        void server.stop(true)
      }
    }),
}

type Machine = ReturnType<typeof createMachine>

/** Runs commands in a root directory, as root, with the network of this machine. */
function createMachine(root: string, print: (line: string) => void) {
  const enter = (script: string) => [
    'unshare',
    '--mount',
    'sh',
    '-c',
    'mount -t proc proc "$1/proc" && exec chroot "$1" /usr/bin/env -i HOME=/root PATH=/root/.local/bin:/usr/bin:/bin NODE_EXTRA_CA_CERTS=/etc/issuer.pem sh -ec "$2"',
    'sh',
    root,
    script,
  ]
  const servers: Array<{ kill(signal: 'SIGKILL'): void }> = []

  /** Runs a script, and prints it with what it wrote. @throws Error if it exits with another code */
  async function shell(script: string, expected = 0): Promise<string> {
    const child = Bun.spawn(enter(script), { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    const [stdout, stderr, exitCode] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ])
    print(`$ ${script}${exitCode === 0 ? '' : `   (exit code ${exitCode})`}`)
    for (const line of `${stdout}${stderr}`.split('\n')) if (line !== '') print(`  ${line}`)
    if (exitCode !== expected) throw new Error(`Expected exit code ${expected}.`)
    return stdout
  }

  /** Runs a script without printing what it wrote: its output is JSON. */
  async function read(script: string): Promise<Json> {
    return JSON.parse(await run(root, enter(script))) as Json
  }

  /** Starts a server, and waits until it says that it is ready. */
  async function serve(command: string) {
    print(`$ ${command} &`)
    const child = Bun.spawn(enter(`exec ${command}`), { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    servers.push(child)
    const output = [collectOutput(child.stdout), collectOutput(child.stderr)]
    const text = () => output.map((one) => one.text()).join('')
    while (!text().includes(' ready in ')) {
      if (child.exitCode !== null) throw new Error(`It ended: ${text()}`)
      await Bun.sleep(50)
    }
    for (const line of text().split('\n')) if (line !== '') print(`  ${line}`)
    return async () => {
      child.kill('SIGTERM')
      print(`  stopped with exit code ${await child.exited}`)
    }
  }
  const stop = () => servers.forEach((server) => server.kill('SIGKILL'))
  return { shell, read, serve, stop }
}

async function followFirstDay({ shell, read, serve }: Machine, url: string, directory: string) {
  const install = `curl -fsSL ${url}/install.sh | OTPD_DOWNLOAD_URL=${url} sh -s --`
  await shell('command -v node || echo there is no Node')
  await shell(`${install} --version ${old}`)
  let stop = await serve('otpd serve')
  const setup = '--setup-token "$(cat /var/lib/otpd/setup-token)"'
  await shell(`echo correct horse battery | otpd login ${setup} --email ada@example.com --password-stdin`)
  await shell('otpd project create shop')
  const app = await read('otpd app create web --project shop --env live --json')
  const send = (server: string, tls: string) =>
    read(
      `curl -sS ${tls} ${server}/v1/otp/send -H 'content-type: application/json' ${headersOf(app)} -d '{"phone": "${phone}"}'`,
    )
  /** Without a provider the message is in the inbox of the developer. */
  const codeOf = async (request: Json) => {
    const id = textAt(request, 'data', 'requestId')
    const messages = listAt(await read('otpd inbox --json'), 'data')
    const message = messages.find((one) => valueAt(one, 'requestId') === id) ?? null
    return { id, code: textAt(message, 'code') }
  }
  const verify = async (sent: { id: string; code: string }) => {
    const body = JSON.stringify({ requestId: sent.id, code: sent.code })
    const answer = await shell(
      `curl -sS --cacert /etc/issuer.pem --resolve ${domain}:443:127.0.0.1 https://${domain}/v1/otp/verify -H 'content-type: application/json' ${headersOf(app)} -d '${body}'`,
    )
    if (!answer.includes('"verified"')) throw new Error('The code was not verified.')
  }
  const oldCode = await codeOf(await send('http://127.0.0.1:8080', ''))
  await stop()

  await shell(install)
  await shell('otpd version')
  stop = await serve(
    `env OTPD_TLS_DIRECTORY_URL=${directory} OTPD_TLS_DIRECTORY_CA_FILE=/etc/pebble.pem otpd serve --domain ${domain}`,
  )
  const tls = `--cacert /etc/issuer.pem --resolve ${domain}:443:127.0.0.1`
  await shell(
    `until curl -sSf ${tls} https://${domain}/v1/health/ready; do sleep 1; done 2>/dev/null; curl -sSI http://127.0.0.1/docs/ | head -2`,
  )
  await verify(oldCode)
  const request = await send(`https://${domain}`, tls)
  await shell(`echo 127.0.0.1 ${domain} > /etc/hosts`)
  const login = `echo correct horse battery | otpd login --server https://${domain} --email ada@example.com --password-stdin`
  await shell(login)
  await verify(await codeOf(request))
  await stop()

  const rollback = `${install} --rollback`
  await shell(rollback, 1)
  await shell('otpd restore /var/lib/otpd/backups/before-migration-*.db --yes --unauthenticated')
  await shell(rollback)
  stop = await serve('otpd serve')
  await shell('otpd project list --server http://127.0.0.1:8080')
  await stop()
}

const headersOf = (app: Json) =>
  ['clientId', 'clientSecret', 'apiKey']
    .map((name) => {
      const header = `x-${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
      return `-H '${header}: ${textAt(app, 'data', name)}'`
    })
    .join(' ')

/** Builds this release, and the first one from its tag. @returns the folder that a server of releases shows */
async function publishReleases(folder: string): Promise<string> {
  const target = hostTarget()?.name ?? ''
  const out = join(folder, 'releases')
  await run(checkout, [
    process.execPath,
    'cli/release.ts',
    '--snapshot',
    '--targets',
    target,
    '--without',
    'packages,image',
    '--out',
    out,
  ]).catch((error) => {
    throw new Error(`npm run release failed: ${error}`)
  })
  const source = join(folder, 'old')
  await run(folder, ['git', 'clone', '--quiet', '--branch', `v${old}`, checkout, source])
  await run(source, ['npm', 'ci', '--prefer-offline', '--no-audit', '--no-fund'])
  await run(source, ['npm', 'run', 'build'])
  const stem = `otpd-${old}-${target}`
  const content = readFileSync(join(source, 'dist/otpd'))
  const archive = packArchive([{ name: `${stem}/otpd`, content, isExecutable: true }], 0)
  const path = join(out, old, `${stem}.tar.gz`)
  mkdirSync(dirname(path))
  writeFileSync(path, archive)
  writeFileSync(join(out, old, 'SHA256SUMS'), `${sha256(archive)}  ${stem}.tar.gz\n`)
  writeFileSync(join(out, 'versions'), `${version}\n${old}\n`)
  return out
}
