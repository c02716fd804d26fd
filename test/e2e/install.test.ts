import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runToEnd } from '../helpers/binary.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'

const script = resolve(import.meta.dir, '../../install.sh')
/** The installer only requires that a release runs, so a small script keeps these tests fast. */
const release = '#!/bin/sh\necho "otpd 9.9.9"\n'
const sha256 = (bytes: string | Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

let directory: string
let prefix: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'otpd-install-'))
  prefix = join(directory, 'prefix')
})

afterEach(() => rmSync(directory, { recursive: true }))

const install = (args: string[] = [], env: Record<string, string> = {}, input?: string) =>
  runToEnd(input === undefined ? ['sh', script, ...args] : ['sh', '-s', '--', ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: directory, PREFIX: prefix, ...env },
    cwd: directory,
    input,
  })

const put = (name: string, content: string | Uint8Array) => {
  writeFileSync(join(directory, name), content)
  return join(directory, name)
}
const installed = () => join(prefix, 'bin/otpd')

describe('install.sh --from', () => {
  test('installs a file that has a checksum file next to it', async () => {
    const from = put('otpd-linux-x64', release)
    put('otpd-linux-x64.sha256', `${sha256(release)}  otpd-linux-x64\n`)
    const result = await install(['--from', from])
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    expect(result.stdout).toContain(`otpd 9.9.9 installed as ${installed()}`)
    expect(result.stdout).toContain('Next: otpd serve')
    expect(statSync(installed()).mode & 0o777).toBe(0o755)
    expect(readdirSync(join(prefix, 'bin'))).toEqual(['otpd'])
  })

  test('reads the checksum from SHA256SUMS, and unpacks a .gz', async () => {
    const packed = Bun.gzipSync(release)
    const from = put('otpd-linux-x64.gz', packed)
    put('SHA256SUMS', `${sha256('other')}  otpd-linux-arm64.gz\n${sha256(packed)} *otpd-linux-x64.gz\n`)
    expect((await install(['--from', from])).exitCode).toBe(0)
    expect(readFileSync(installed(), 'utf8')).toBe(release)
  })

  test('installs nothing if the checksum differs', async () => {
    const from = put('otpd', release)
    put('otpd.sha256', `${sha256('something else')}  otpd\n`)
    const result = await install(['--from', from])
    expect(result.exitCode).toBe(1)
    expect(result.stderr).toContain('nothing was installed')
    expect(existsSync(prefix)).toBe(false)
  })

  test('installs nothing without a checksum, or with only that of another file', async () => {
    const from = put('otpd', release)
    expect((await install(['--from', from])).stderr).toContain('There is no checksum for otpd')
    put('SHA256SUMS', `${sha256(release)}  otpd-linux-x64\n`)
    expect((await install(['--from', from])).exitCode).toBe(1)
    expect(existsSync(prefix)).toBe(false)
  })

  test('keeps the old program if the new one does not run', async () => {
    const goodRelease = put('good', release)
    put('good.sha256', sha256(release))
    await install(['--from', goodRelease])
    const bad = put('bad', '#!/bin/sh\nexit 1\n')
    put('bad.sha256', sha256('#!/bin/sh\nexit 1\n'))
    expect((await install(['--from', bad])).exitCode).toBe(1)
    expect(readFileSync(installed(), 'utf8')).toBe(release)
    expect(readdirSync(join(prefix, 'bin'))).toEqual(['otpd'])
  })
})

describe('install.sh with OTPD_DOWNLOAD_URL', () => {
  let server: ReturnType<typeof serveFiles>
  let files: Record<string, string>

  const serveFiles = () =>
    Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch(request) {
        const content = files[new URL(request.url).pathname]
        return content === undefined ? new Response(null, { status: 404 }) : new Response(content)
      },
    })

  beforeEach(() => {
    server = serveFiles()
    files = { '/v9/otpd': release }
  })

  afterEach(() => server.stop(true))

  const download = () =>
    install([], { OTPD_DOWNLOAD_URL: `http://127.0.0.1:${server.port}/v9/otpd`, NO_PROXY: '127.0.0.1' })

  test('installs what it downloads, also when piped into sh', async () => {
    files['/v9/otpd.sha256'] = sha256(release)
    expect((await download()).exitCode).toBe(0)
    rmSync(prefix, { recursive: true })
    const env = { OTPD_DOWNLOAD_URL: `http://127.0.0.1:${server.port}/v9/otpd`, NO_PROXY: '127.0.0.1' }
    expect((await install([], env, readFileSync(script, 'utf8'))).exitCode).toBe(0)
    expect(existsSync(installed())).toBe(true)
  })

  test('uses SHA256SUMS if the file has no checksum file', async () => {
    files['/v9/SHA256SUMS'] = `${sha256(release)}  otpd\n`
    expect((await download()).exitCode).toBe(0)
  })

  test('installs nothing without a checksum', async () => {
    const result = await download()
    expect(result.exitCode).toBe(1)
    expect(result.stderr).toContain('There is no checksum')
    expect(existsSync(prefix)).toBe(false)
  })

  test('installs nothing if the file does not exist', async () => {
    files = {}
    expect((await download()).stderr).toContain('could not be downloaded')
  })

  test('refuses plain HTTP from another machine', async () => {
    const result = await install([], { OTPD_DOWNLOAD_URL: 'http://releases.example/otpd' })
    expect(result.exitCode).toBe(1)
    expect(result.stderr).toContain('https only')
  })
})

/** Runs the script with a PATH that has one program to download with. */
function pathWith(program: string): string {
  const folder = join(directory, 'only')
  mkdirSync(folder)
  const programs =
    'sh cp rm mv mkdir mktemp cat chmod sed tail tr awk cut sha256sum uname basename dirname id gzip'
  for (const name of [...programs.split(' '), program]) {
    const path = Bun.which(name)
    if (path !== null) symlinkSync(path, join(folder, name))
  }
  return folder
}

describe.each(['curl', 'wget'])('install.sh with %s over https', (program) => {
  const canRun = hasOpenssl && Bun.which(program) !== null

  test.skipIf(!canRun)('follows a redirect to https, and none to http', async () => {
    const { key, cert } = makeCertificate('localhost')
    const requests: string[] = []
    let target = ''
    const serve = (tls?: { key: string; cert: string }) =>
      Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        ...(tls && { tls }),
        fetch(request) {
          const { protocol, pathname } = new URL(request.url)
          requests.push(`${protocol}${pathname}`)
          if (pathname.startsWith('/moved/'))
            return Response.redirect(`${target}${pathname.slice('/moved'.length)}`, 302)
          return new Response(pathname.endsWith('.sha256') ? sha256(release) : release)
        },
      })
    const [secure, plain] = [serve({ key, cert }), serve()]
    const ca = put('ca.pem', cert)
    const env = {
      PATH: pathWith(program),
      NO_PROXY: 'localhost,127.0.0.1',
      CURL_CA_BUNDLE: ca,
      WGETRC: put('wgetrc', `ca_certificate = ${ca}\n`),
      OTPD_DOWNLOAD_URL: `https://localhost:${secure.port}/moved/otpd`,
    }
    target = `http://127.0.0.1:${plain.port}`
    const refused = await install([], env)
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('could not be downloaded') })
    expect(requests).toEqual(['https:/moved/otpd'])
    target = `https://localhost:${secure.port}`
    expect(await install([], env)).toMatchObject({ exitCode: 0 })
    await secure.stop(true)
    await plain.stop(true)
  })
})

test('a truncated install.sh does nothing', async () => {
  const fullScript = readFileSync(script, 'utf8')
  const result = await install(['--uninstall'], {}, fullScript.slice(0, fullScript.lastIndexOf('main "$@"')))
  expect(result).toEqual({ exitCode: 0, stdout: '', stderr: '' })
})

test('install.sh piped into sh without anything to install says what to do', async () => {
  const result = await install([], {}, readFileSync(script, 'utf8'))
  expect(result.exitCode).toBe(1)
  expect(result.stderr).toContain('OTPD_DOWNLOAD_URL')
})

test('install.sh --uninstall removes the program and nothing else', async () => {
  const from = put('otpd', release)
  put('otpd.sha256', sha256(release))
  await install(['--from', from])
  expect(await install(['--uninstall'])).toMatchObject({ exitCode: 0 })
  expect(existsSync(installed())).toBe(false)
  expect((await install(['--uninstall'])).stdout).toContain('nothing to do')
})

test.skipIf(process.getuid?.() === 0)('install.sh reports a folder without write permission', async () => {
  const from = put('otpd', release)
  put('otpd.sha256', sha256(release))
  chmodSync(directory, 0o500)
  const result = await install(['--from', from], { TMPDIR: tmpdir() })
  chmodSync(directory, 0o700)
  expect(result.exitCode).toBe(1)
  expect(result.stderr).toContain('PREFIX=DIR')
})
