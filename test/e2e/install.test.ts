import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { runToEnd, startServer, binaryPath } from '../helpers/binary.ts'
import {
  createInstallBed,
  fakeOtpd,
  hostTargetName,
  installScriptPath,
  sha256,
  type InstallBed,
} from '../helpers/install-script.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'

const release = fakeOtpd('9.9.9')

let bed: InstallBed
beforeEach(() => void (bed = createInstallBed()))
afterEach(() => bed.close())

/** Puts a file next to its checksum. */
function putListed(name: string, content: string | Uint8Array, listed: string | Uint8Array = content) {
  bed.put('given/SHA256SUMS', `${sha256(listed)}  ${name}\n`)
  return bed.put(`given/${name}`, content)
}

describe('install.sh --from', () => {
  test('installs an executable, or an archive, that SHA256SUMS lists', async () => {
    const result = await bed.run(['--from', putListed('otpd', release)])
    expect(result.exitCode).toBe(0)
    expect(result.stdout).toContain(`otpd 9.9.9 installed as ${bed.installed}`)
    expect(result.stdout).toContain('Next: otpd serve')
    expect(statSync(bed.installed).mode & 0o777).toBe(0o755)
    expect(readdirSync(join(bed.prefix, 'bin'))).toEqual(['otpd'])

    bed.publish('9.9.10')
    const name = `otpd-9.9.10-${hostTargetName}.tar.gz`
    const archive = putListed(name, bed.files.get(`/9.9.10/${name}`) ?? '')
    expect((await bed.run(['--from', archive])).stdout).toContain('otpd 9.9.10 installed')
  })

  test('installs nothing if the checksum differs or is missing', async () => {
    const changed = await bed.run(['--from', putListed('otpd', release, 'something else')])
    expect(changed).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is not the one in SHA256SUMS; nothing was installed'),
    })
    const unlisted = await bed.run(['--from', bed.put('given/other', release)])
    expect(unlisted.stderr).toContain('There is no checksum for other')
    expect((await bed.run(['--from', bed.put('alone/otpd', release)])).stderr).toContain(
      'There is no checksum',
    )
    expect((await bed.run(['--from', '/dev/null/none'])).stderr).toContain('There is no file /dev/null/none.')
    expect(existsSync(bed.prefix)).toBe(false)
  })

  test('keeps the old program if the new one does not run', async () => {
    await bed.run(['--from', putListed('good', release)])
    for (const [name, text] of [
      ['bad', '#!/bin/sh\nexit 1\n'],
      ['bad.tar.gz', 'no archive'],
    ] as const)
      expect((await bed.run(['--from', putListed(name, text)])).exitCode).toBe(1)
    expect(readFileSync(bed.installed, 'utf8')).toBe(release)
    expect(readdirSync(join(bed.prefix, 'bin'))).toEqual(['otpd'])
  })

  test('installs nothing into a folder that has the name of the program', async () => {
    mkdirSync(bed.installed, { recursive: true })
    const { exitCode, stderr } = await bed.run(['--from', putListed('otpd', release)])
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`${bed.installed} is a folder; nothing was installed.`)
    expect(readdirSync(bed.installed)).toEqual([])
  })
})

describe('install.sh with the real otpd', () => {
  const given = () => {
    bed.put('real/SHA256SUMS', `${sha256(readFileSync(binaryPath))}  otpd\n`)
    symlinkSync(binaryPath, join(bed.directory, 'real/otpd'))
    return join(bed.directory, 'real/otpd')
  }

  test('replaces and removes it while it serves', async () => {
    const from = given()
    expect((await bed.run(['--from', from])).exitCode).toBe(0)
    const server = await startServer({ binary: bed.installed })
    expect((await bed.run(['--from', from])).exitCode).toBe(0)
    await server.waitUntilReady()
    expect((await bed.run(['--uninstall'])).exitCode).toBe(0)
    await server.waitUntilReady()
    expect(await server.stop()).toBe(0)
  })

  const strace = Bun.which('strace')
  test.skipIf(strace === null)('writes only below PREFIX and TMPDIR', async () => {
    const log = join(bed.directory, 'trace')
    const shell = [strace ?? '', '-f', '-qq', '-e', 'trace=file', '-o', log, 'sh']
    expect((await bed.run(['--from', given()], { shell })).exitCode).toBe(0)
    const written = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) =>
        /O_WRONLY|O_RDWR|O_CREAT|^\d+ +(rename|unlink|mkdir|link|symlink|chmod|rmdir)/.test(line),
      )
      // Relative names: mkdir -p and rm -r change into the folders that they work on, which are in the list themselves.
      .filter((line) => !line.includes('= -1') && !/ (mkdir|unlinkat)\([^"]*"[^/]/.test(line))
      .map((line) => /"([^"]*)"/.exec(line)?.[1] ?? line)
    expect(written.length).toBeGreaterThan(10)
    const allowed = [`${bed.prefix}`, `${bed.temporary}/`, '/dev/null', '/dev/tty', '/proc/']
    expect(written.filter((path) => !allowed.some((prefix) => path.startsWith(prefix)))).toEqual([])
  })
})

/** Runs the script with a PATH that has one program to download with. */
function pathWith(program: string): string {
  const folder = join(bed.directory, 'only')
  mkdirSync(folder)
  const programs =
    'sh cp rm mv mkdir mktemp cat chmod sed tail tr awk cut sha256sum uname basename dirname id gzip tar grep head getconf'
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
    bed.publish('9.9.9')
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
          const content = bed.files.get(pathname)
          return content === undefined
            ? new Response(null, { status: 404 })
            : new Response(Buffer.from(content))
        },
      })
    const [secure, plain] = [serve({ key, cert }), serve()]
    const ca = bed.put('ca.pem', cert)
    const env = {
      PATH: pathWith(program),
      NO_PROXY: 'localhost,127.0.0.1',
      CURL_CA_BUNDLE: ca,
      WGETRC: bed.put('wgetrc', `ca_certificate = ${ca}\n`),
      OTPD_DOWNLOAD_URL: `https://localhost:${secure.port}/moved`,
    }
    target = `http://127.0.0.1:${plain.port}`
    const refused = await bed.run([], { env })
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('could not be downloaded') })
    expect(requests).toEqual(['https:/moved/latest'])
    target = `https://localhost:${secure.port}`
    expect(await bed.run([], { env })).toMatchObject({ exitCode: 0 })
    await secure.stop(true)
    await plain.stop(true)
  })
})

/** Pipes a script into sh, as `curl … | sh` does. */
const pipe = (script: string, env: Record<string, string> = {}) =>
  runToEnd(['sh', '-s'], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: bed.directory,
      PREFIX: bed.prefix,
      NO_PROXY: '127.0.0.1',
      ...env,
    },
    cwd: bed.directory,
    input: script,
  })
const fullScript = readFileSync(installScriptPath, 'utf8')

test('install.sh can be piped into sh', async () => {
  bed.publish('9.9.9')
  expect(await pipe(fullScript, { OTPD_DOWNLOAD_URL: `${bed.url}/` })).toMatchObject({ exitCode: 0 })
  expect(existsSync(bed.installed)).toBe(true)
})

test('a truncated install.sh does nothing', async () => {
  const result = await pipe(fullScript.slice(0, fullScript.lastIndexOf('main "$@"')))
  expect(result).toEqual({ exitCode: 0, stdout: '', stderr: '' })
})

test('install.sh says what to do without anything to install, over http, and without a home', async () => {
  expect(await pipe(fullScript)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('OTPD_DOWNLOAD_URL'),
  })
  const http = await pipe(fullScript, { OTPD_DOWNLOAD_URL: 'http://releases.example' })
  expect(http).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('https only') })
  expect((await pipe(fullScript, { HOME: '', PREFIX: '' })).stderr).toContain('HOME is not set.')
})

test('install.sh --uninstall removes what killed upgrades have left, and a second time has nothing to do', async () => {
  for (const name of ['bin/otpd', 'bin/.otpd-1.new', 'lib/otpd/.new', 'lib/otpd/.otpd-1.old'])
    bed.put(`prefix/${name}`, 'half')
  expect((await bed.run(['--uninstall'])).exitCode).toBe(0)
  expect(existsSync(join(bed.prefix, 'lib/otpd'))).toBe(false)
  expect(readdirSync(join(bed.prefix, 'bin'))).toEqual([])
  expect((await bed.run(['--uninstall'])).stdout).toContain('nothing to do')
})

test.skipIf(process.getuid?.() === 0)('install.sh reports a folder without write permission', async () => {
  const from = putListed('otpd', release)
  mkdirSync(bed.prefix)
  chmodSync(bed.prefix, 0o500)
  const result = await bed.run(['--from', from])
  expect(result.exitCode).toBe(1)
  expect(result.stderr).toContain('PREFIX=DIR')
})
