import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { packArchive } from '../../cli/release/archive.ts'
import { hostTarget } from '../../cli/release/targets.ts'
import { runToEnd } from './binary.ts'

export const installScriptPath = resolve(import.meta.dir, '../../install.sh')
export const hostTargetName = hostTarget()?.name ?? 'none'

export const sha256 = (bytes: string | Uint8Array) =>
  new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

/** Writes a program that answers the calls of the installer; a real one would make these tests slow. */
export const fakeOtpd = (version: string, migrateExit = 0) => `#!/bin/sh
case "$1" in
  version) echo 'otpd ${version} (fake)' ;;
  completion | man) echo "$* of ${version}" ;;
  migrate) echo 'Error: the database is newer than this otpd' >&2; exit ${migrateExit} ;;
esac
`

export type InstallBed = ReturnType<typeof createInstallBed>

/** Makes an empty home and a folder of releases on a local server, for runs of install.sh. */
export function createInstallBed() {
  const directory = mkdtempSync(join(tmpdir(), 'otpd-install-'))
  const prefix = join(directory, 'prefix')
  const temporary = join(directory, 'tmp')
  const files = new Map<string, string | Uint8Array>()
  const requests: string[] = []
  mkdirSync(temporary)
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      requests.push(pathname)
      const content = files.get(pathname)
      return content === undefined ? new Response(null, { status: 404 }) : new Response(Buffer.from(content))
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  const put = (name: string, content: string | Uint8Array, mode = 0o644) => {
    const path = join(directory, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content, { mode })
    return path
  }

  return {
    directory,
    prefix,
    temporary,
    url,
    files,
    requests,
    put,
    installed: join(prefix, 'bin/otpd'),
    /** Runs the installer with an empty home, from `script` if one is named. */
    run: (args: string[], { script = installScriptPath, shell = ['sh'], env = {} }: InstallRun = {}) =>
      runToEnd([...shell, script, ...args], {
        env: {
          PATH: process.env.PATH ?? '',
          HOME: directory,
          PREFIX: prefix,
          TMPDIR: temporary,
          NO_PROXY: '127.0.0.1',
          ...env,
        },
        cwd: directory,
      }),
    /** Puts a release on the server, as `npm run release` lays it out. @returns the text of its SHA256SUMS */
    publish(version: string, otpd = fakeOtpd(version)) {
      const stem = `otpd-${version}-${hostTargetName}`
      const content = Buffer.from(otpd)
      const archive = packArchive([{ name: `${stem}/otpd`, content, isExecutable: true }], 0)
      const sums = `${sha256(archive)}  ${stem}.tar.gz\n`
      files.set(`/${version}/${stem}.tar.gz`, archive)
      files.set(`/${version}/SHA256SUMS`, sums)
      files.set('/latest', `${version}\n`)
      files.set('/versions', `${version}\n${files.get('/versions')?.toString() ?? ''}`)
      return sums
    },
    /** Writes a copy of install.sh with some of its text replaced. */
    changedScript(...changes: [from: string, to: string][]) {
      const script = changes.reduce(
        (text, [from, to]) => {
          if (!text.includes(from)) throw new Error(`install.sh has no ${from}`)
          return text.replaceAll(from, to)
        },
        readFileSync(installScriptPath, 'utf8'),
      )
      return put('install-changed.sh', script)
    },
    close() {
      void server.stop(true)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

type InstallRun = { script?: string; shell?: string[]; env?: Record<string, string> }
