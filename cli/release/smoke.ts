import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { checkMachSignature } from './mach-signature.ts'
import { hostTarget, type Target } from './targets.ts'

/** The result of a check; `missing` names what this machine lacks for it. */
type SmokeResult = { kind: 'passed'; detail: string } | { kind: 'missing'; detail: string }

type Runner = { command: (binary: string, folder: string) => string[] } | { missing: string }

/** An emulated server takes seconds to start. */
const startMs = 60_000

/**
 * Runs an executable of a release: it must serve, send a code, verify it and stop. One for macOS is run on a Mac only;
 * elsewhere its code signature is checked, without which macOS does not start it.
 *
 * @throws Error if it fails
 */
export async function smokeRun(target: Target, binary: string): Promise<SmokeResult> {
  if (target.os === 'darwin' && process.platform !== 'darwin') {
    const pages = checkMachSignature(readFileSync(binary))
    return { kind: 'passed', detail: `not run: this is no Mac. Its signature covers all ${pages} pages` }
  }
  const runner = findRunner(target)
  if ('missing' in runner) return { kind: 'missing', detail: runner.missing }
  // Not TMPDIR: in a root of Alpine only /tmp is writable.
  const folder = mkdtempSync('/tmp/otpd-smoke-')
  try {
    const started = performance.now()
    await verifyOneCode(runner.command(binary, folder), folder)
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    return { kind: 'passed', detail: `served, sent and verified in ${seconds} s` }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Finds how this machine runs an executable: directly, emulated by qemu-user, or in a root of Alpine under bubblewrap. */
function findRunner({ name, os, arch, isMusl }: Target): Runner {
  if (name === hostTarget()?.name) return { command: (binary) => [binary] }
  if (process.platform !== os) return { missing: `${name} runs on ${os} only` }
  const isForeign = arch !== process.arch
  const emulator = `qemu-${arch === 'arm64' ? 'aarch64' : 'x86_64'}-static`
  if (isForeign && Bun.which(emulator) === null)
    return { missing: `${emulator} (apt-get install qemu-user-static)` }
  const alpine = join(process.env['OTPD_ALPINE_ROOTS'] ?? '/nonexistent', arch)
  if (isMusl && !existsSync(join(alpine, 'lib')))
    return {
      missing: `OTPD_ALPINE_ROOTS, a folder with roots of Alpine in ${arch}/ (musl 1.2.4 or later, libstdc++)`,
    }
  if (isForeign) {
    const libraries = isMusl ? alpine : '/usr/aarch64-linux-gnu'
    if (!existsSync(libraries)) return { missing: `${libraries} (apt-get install libc6-arm64-cross)` }
    return { command: (binary) => [emulator, '-L', libraries, binary] }
  }
  if (!isMusl) return { missing: 'a system with glibc' }
  if (Bun.which('bwrap') === null) return { missing: 'bwrap (apt-get install bubblewrap)' }
  return {
    // prettier-ignore
    command: (binary, folder) => [
      'bwrap', '--die-with-parent',
      '--ro-bind', alpine, '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp',
      '--ro-bind', binary, '/tmp/otpd', '--bind', folder, folder,
      '/tmp/otpd',
    ],
  }
}

async function verifyOneCode(command: string[], folder: string) {
  const dataDir = join(folder, 'data')
  const child = Bun.spawn([...command, 'serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0'], {
    env: { PATH: process.env.PATH ?? '', HOME: folder, OTPD_LOG_FORMAT: 'json' },
    cwd: folder,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const errors = child.stderr.text()
  const timer = setTimeout(() => child.kill('SIGKILL'), startMs)
  try {
    const url = await readUrl(child.stdout, errors)
    const call = createCaller(url)
    const session = await call('/v1/auth/token', {
      form: {
        grant_type: 'urn:otpd:setup-token',
        setup_token: readFileSync(join(dataDir, 'setup-token'), 'utf8').trim(),
        email: 'ada@example.com',
        password: 'correct horse battery',
        name: 'Ada',
      },
    })
    const developer = { authorization: `Bearer ${session('id_token')}` }
    const project = await call('/v1/projects', { body: { name: 'smoke' }, headers: developer })
    const app = await call('/v1/applications', {
      body: { name: 'web', projectId: project('data', 'id'), environment: 'test' },
      headers: developer,
    })
    const headers = {
      'x-client-id': app('data', 'clientId'),
      'x-client-secret': app('data', 'clientSecret'),
      'x-api-key': app('data', 'apiKey'),
    }
    const sent = await call('/v1/otp/send', { body: { phone: '+14155550132' }, headers })
    const code = { requestId: sent('data', 'requestId'), code: sent('data', 'code') }
    const verified = await call('/v1/otp/verify', { body: code, headers })
    if (verified('data', 'status') !== 'verified') throw new Error('The code was not verified.')
    process.kill(innermostChild(child.pid), 'SIGTERM')
    const exitCode = await child.exited
    if (exitCode !== 0) throw new Error(`otpd serve ended with ${exitCode} after SIGTERM.`)
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
    await child.exited
  }
}

/** Finds the process that a signal is for: bubblewrap starts otpd as its child, and would end without it. */
function innermostChild(pid: number): number {
  const path = `/proc/${pid}/task/${pid}/children`
  const [child] = existsSync(path) ? readFileSync(path, 'utf8').split(' ') : []
  return child ? innermostChild(Number(child)) : pid
}

async function readUrl(stream: ReadableStream<Uint8Array>, errors: Promise<string>): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true })
    const [, url] = /"url":"(http:[^"]+)"/.exec(text) ?? []
    if (url !== undefined) return url
  }
  throw new Error(`otpd serve ended before it was ready.\n${text}${await errors}`)
}

type Call = {
  body?: Record<string, string>
  form?: Record<string, string>
  headers?: Record<string, string>
}

/** Returns a function that posts, and answers with a reader of the response's texts. */
function createCaller(url: string) {
  return async (path: string, { body, form, headers = {} }: Call) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      body: form ? new URLSearchParams(form) : JSON.stringify(body),
    })
    const answer: unknown = await response.json()
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${JSON.stringify(answer)}`)
    return (...keys: string[]): string => {
      const found = keys.reduce<unknown>(
        (value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined),
        answer,
      )
      if (typeof found !== 'string') throw new Error(`POST ${path} answered without ${keys.join('.')}.`)
      return found
    }
  }
}
