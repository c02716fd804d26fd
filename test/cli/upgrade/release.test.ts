import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packArchive } from '../../../cli/release/archive.ts'
import { updateReleaseFolder } from '../../../cli/release/folder.ts'
import { sign } from '../../../cli/release/signature.ts'
import type { ProgressStep } from '../../../src/shared/progress.ts'
import { CliError } from '../../../cli/terminal/errors.ts'
import { downloadProgram, readLatest } from '../../../cli/upgrade/release.ts'
import { isSignedBy } from '../../../cli/upgrade/signature.ts'
import { openReleaseSource } from '../../../cli/upgrade/source.ts'
import { sha256 } from '../../helpers/install-script.ts'

const hasKeygen = Bun.which('ssh-keygen') !== null
if (!hasKeygen) process.stderr.write('Skipped: signatures of releases. Install openssh-client to run them.\n')

describe.skipIf(!hasKeygen)('a release', () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-releases-'))
  const releases = join(folder, 'releases')
  const target = 'linux-x64'
  const program = Buffer.from('#!/bin/sh\necho otpd 9.9.9\n'.repeat(1000))
  const stem = `otpd-9.9.9-${target}`
  let key = ''
  let otherKey = ''

  const makeKey = (name: string) => {
    const path = join(folder, name)
    Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', path])
    return { path, publicKey: readFileSync(`${path}.pub`, 'utf8') }
  }
  const write = (name: string, content: string | Uint8Array) => writeFileSync(join(releases, name), content)
  const read = (name: string) => readFileSync(join(releases, name))

  /** Writes a signed release as `npm run release` does. */
  function publish() {
    rmSync(releases, { recursive: true, force: true })
    mkdirSync(join(releases, '9.9.9'), { recursive: true })
    const files = [
      { name: `${stem}/README.md`, content: Buffer.from('x'.repeat(513)) },
      { name: `${stem}/otpd`, content: program, isExecutable: true },
    ]
    const archive = packArchive(files, 0)
    write(`9.9.9/${stem}.tar.gz`, archive)
    write('9.9.9/SHA256SUMS', `${'0'.repeat(64)}  install.sh\n${sha256(archive)}  ${stem}.tar.gz\n`)
    write('9.9.9/install.sh', '')
    sign(join(releases, '9.9.9'), 'SHA256SUMS', join(folder, 'key'))
    updateReleaseFolder(releases, join(folder, 'key'))
  }
  beforeAll(() => {
    key = makeKey('key').publicKey
    otherKey = makeKey('other').publicKey
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const policy = () => ({ key, allowUnsigned: false })
  const source = () => openReleaseSource(releases, '/')
  const download = (
    changes: Partial<{ target: string; version: string; key: string | null; allowUnsigned: boolean }> = {},
  ) =>
    downloadProgram(source(), {
      version: changes.version ?? '9.9.9',
      target: changes.target ?? target,
      policy: { ...policy(), ...changes },
      onStep: () => {},
    })
  const refusal = (promise: Promise<unknown>) =>
    promise.then(
      () => 'taken',
      (error: unknown) => (error instanceof CliError ? `${error.code}: ${error.message}` : String(error)),
    )

  test('is found, checked and unpacked, from a folder and over HTTP', async () => {
    publish()
    expect(await readLatest(source(), policy())).toBe('9.9.9')
    expect(Buffer.from(await download()).equals(program)).toBe(true)
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => new Response(Bun.file(join(releases, new URL(request.url).pathname))),
    })
    const remote = openReleaseSource(`http://127.0.0.1:${server.port}/`, '/')
    expect(await readLatest(remote, policy())).toBe('9.9.9')
    await server.stop(true)
    expect(await refusal(readLatest(remote, policy()))).toStartWith('RELEASE_UNAVAILABLE: ')
    const refusing = openReleaseSource('http://127.0.0.1:1', '/')
    expect(await refusal(readLatest(refusing, policy()))).toEndWith(
      '/latest could not be read: connection refused, ECONNREFUSED',
    )
    expect(() => openReleaseSource('http://releases.example.com', '/')).toThrow('over https only')
  })

  test('tells how far the download is, and gives up one that stands still', async () => {
    publish()
    let isStuck = false
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch(request) {
        const { pathname } = new URL(request.url)
        const content = readFileSync(join(releases, pathname))
        if (!isStuck || !pathname.endsWith('.gz')) return new Response(content)
        // The second half never comes.
        const stream = new ReadableStream({
          start: (controller) => controller.enqueue(content.subarray(0, content.length / 2)),
        })
        return new Response(stream, { headers: { 'content-length': String(content.length) } })
      },
    })
    const remote = openReleaseSource(`http://127.0.0.1:${server.port}`, '/', 200)
    const steps: ProgressStep[] = []
    const get = () =>
      downloadProgram(remote, {
        version: '9.9.9',
        target,
        policy: policy(),
        onStep: (step) => steps.push(step),
      })
    await get()
    const { size } = Bun.file(join(releases, `9.9.9/${stem}.tar.gz`))
    expect(steps.at(-1)).toEqual({
      step: `downloading ${stem}.tar.gz`,
      done: size,
      total: size,
      unit: 'bytes',
    })
    isStuck = true
    expect(await refusal(get())).toMatch(/^RELEASE_UNAVAILABLE: .*: nothing came for 0.2 seconds$/)
    await server.stop(true)
  })

  test('is not followed from https to http', async () => {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => Response.redirect('http://releases.example.com/latest', 302),
    })
    const remote = openReleaseSource(`http://127.0.0.1:${server.port}`, '/')
    expect(await refusal(readLatest(remote, policy()))).toContain('over https only')
    await server.stop(true)
  })

  test('is refused without a signature, with that of another key, and for another file', async () => {
    publish()
    expect(await refusal(download({ key: otherKey }))).toContain("is not signed by otpd's key")
    expect(await refusal(download({ key: null }))).toStartWith('RELEASE_NOT_CHECKED: ')
    // The signature of another file, and of the same bytes for another purpose.
    const signature = read('9.9.9/SHA256SUMS.sig')
    write('9.9.9/SHA256SUMS.sig', read('latest.sig'))
    expect(await refusal(download())).toStartWith('RELEASE_NOT_SIGNED: ')
    write('latest.sig', signature)
    expect(await refusal(readLatest(source(), policy()))).toStartWith('RELEASE_NOT_SIGNED: ')
    rmSync(join(releases, '9.9.9/SHA256SUMS.sig'))
    expect(await refusal(download())).toStartWith('RELEASE_NOT_SIGNED: ')
    expect(await refusal(download({ allowUnsigned: true }))).toBe('taken')
    // A wrong signature is never taken.
    write('9.9.9/SHA256SUMS.sig', signature.subarray(0, 100))
    expect(await refusal(download({ allowUnsigned: true }))).toStartWith('RELEASE_NOT_SIGNED: ')
  })

  test('is refused where a byte of its sums, its signature or its archive differs', async () => {
    publish()
    for (const name of ['9.9.9/SHA256SUMS', `9.9.9/${stem}.tar.gz`]) {
      const content = read(name)
      for (const index of [0, Math.floor(content.length / 2), content.length - 1]) {
        const changed = Buffer.from(content)
        changed[index] = (changed[index] ?? 0) ^ 1
        write(name, changed)
        expect(await refusal(download())).toMatch(/^RELEASE_(NOT_SIGNED|DAMAGED|NOT_FOUND): /)
      }
      write(name, content.subarray(0, content.length - 10))
      expect(await refusal(download())).toMatch(/^RELEASE_(NOT_SIGNED|DAMAGED): /)
      write(name, content)
    }
    const armored = read('9.9.9/SHA256SUMS.sig').toString()
    const blob = Buffer.from(armored.replaceAll(/-----.*-----|\s/g, ''), 'base64')
    const armor = (bytes: Uint8Array) =>
      `-----BEGIN SSH SIGNATURE-----\n${Buffer.from(bytes).toString('base64')}\n-----END SSH SIGNATURE-----\n`
    const sums = read('9.9.9/SHA256SUMS')
    expect(await isSignedBy(key, 'otpd-release', sums, armor(blob))).toBe(true)
    for (let index = 0; index < blob.length; index++) {
      const changed = Buffer.from(blob)
      changed[index] = (changed[index] ?? 0) ^ 1
      expect(await isSignedBy(key, 'otpd-release', sums, armor(changed))).toBe(false)
      expect(await isSignedBy(key, 'otpd-release', sums, armor(blob.subarray(0, index)))).toBe(false)
    }
    expect(await refusal(download())).toBe('taken')
  })

  test('is refused for another machine, and if it is not there', async () => {
    publish()
    expect(await refusal(download({ target: 'darwin-arm64' }))).toBe(
      'RELEASE_NOT_FOUND: Release 9.9.9 has no file for darwin-arm64.',
    )
    rmSync(join(releases, `9.9.9/${stem}.tar.gz`))
    expect(await refusal(download())).toStartWith('RELEASE_NOT_FOUND: ')
    expect(await refusal(download({ version: '8.8.8' }))).toStartWith('RELEASE_NOT_FOUND: ')
    write('latest', '../../etc')
    expect(await refusal(readLatest(source(), { key, allowUnsigned: true }))).toStartWith(
      'RELEASE_NOT_SIGNED: ',
    )
    rmSync(join(releases, 'latest.sig'))
    for (const latest of ['../../etc', '..', '9.9', 'v9.9.9', 'newest', '99999999999999999999.0.0', '']) {
      write('latest', latest)
      expect(await refusal(readLatest(source(), { key, allowUnsigned: true }))).toStartWith(
        'RELEASE_INVALID: ',
      )
    }
  })
})
