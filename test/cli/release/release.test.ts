import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packArchive } from '../../../cli/release/archive.ts'
import { listBundledPackages, thirdPartyLicences } from '../../../cli/release/licences.ts'
import { checkMachSignature } from '../../../cli/release/mach-signature.ts'
import { updateReleaseFolder } from '../../../cli/release/folder.ts'
import { readOptions, requireTag } from '../../../cli/release/options.ts'
import { requireKeyPair } from '../../../cli/release/key-pair.ts'
import { version } from '../../../cli/version.ts'

const root = resolve(import.meta.dir, '../../..')
let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'otpd-release-'))))
afterEach(() => rmSync(folder, { recursive: true }))

test('an archive keeps names, modes and the given time, and tar reads it', () => {
  const files = [
    { name: 'otpd/run', content: Buffer.from('#!/bin/sh\n'), isExecutable: true },
    { name: 'otpd/notes', content: Buffer.alloc(513, 'n') },
  ]
  const archive = packArchive(files, 1_700_000_000)
  expect(Buffer.compare(archive, packArchive(files, 1_700_000_000))).toBe(0)
  writeFileSync(join(folder, 'a.tar.gz'), archive)
  expect(Bun.spawnSync(['tar', '-xzf', 'a.tar.gz'], { cwd: folder }).stderr.toString()).toBe('')
  expect(readFileSync(join(folder, 'otpd/notes'), 'utf8')).toBe('n'.repeat(513))
  const { mode, mtimeMs } = statSync(join(folder, 'otpd/run'))
  expect([mode & 0o777, mtimeMs]).toEqual([0o755, 1_700_000_000_000])
  expect(() => packArchive([{ name: 'n'.repeat(101), content: Buffer.alloc(0) }], 0)).toThrow('too long')
})

describe('the licences', () => {
  const bundle = (manifest: Record<string, unknown>, files: Record<string, string> = {}) => {
    const path = 'node_modules/outer/node_modules/@scope/inner'
    mkdirSync(join(folder, path), { recursive: true })
    writeFileSync(
      join(folder, path, 'package.json'),
      JSON.stringify({ name: '@scope/inner', version: '1.0.0', ...manifest }),
    )
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, path, name), text)
    const inputs = {
      [`${path}/lib/index.js`]: { bytesInOutput: 1 },
      'node_modules/shaken/index.js': { bytesInOutput: 0 },
    }
    return listBundledPackages(folder, {
      inputs: {},
      outputs: { './otpd': { bytes: 1, inputs, imports: [], exports: [] } },
    })
  }
  const texts = join(root, '.packaging/licences')

  test('come from the package, or from its author and the standard text', () => {
    const shipped = bundle({ license: 'MIT' }, { 'LICENSE.md': 'Copyright Ada', NOTICE: 'with thanks' })
    expect(shipped).toMatchObject([{ name: '@scope/inner', text: 'Copyright Ada\n\nwith thanks' }])
    expect(thirdPartyLicences(shipped, texts)).toContain('@scope/inner 1.0.0 (MIT)\n')
    rmSync(join(folder, 'node_modules'), { recursive: true })
    const bare = bundle({ license: 'MIT', author: 'Ada <ada@example.com>' })
    expect(thirdPartyLicences(bare, texts)).toContain('Copyright (c) Ada\n\nPermission is hereby granted')
    expect(thirdPartyLicences(bare, texts)).toContain('LGPL-2.1. Sources: https://github.com/oven-sh/tinycc')
    expect(thirdPartyLicences(bare, texts)).toContain('GNU LESSER GENERAL PUBLIC LICENSE')
  })

  test('that are not on the list fail the release', () => {
    expect(() => bundle({ license: 'AGPL-3.0' })).toThrow('@scope/inner: AGPL-3.0')
    expect(() => bundle({})).toThrow('@scope/inner: none')
    expect(bundle({ license: '(MIT OR GPL-3.0)' })).toHaveLength(1)
  })
})

test('a mended older release does not become the newest of the folder, nor does a pre-release', () => {
  for (const name of ['0.2.0', '0.1.10', '0.1.9', '0.3.0-rc.1']) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'install.sh'), name)
  }
  writeFileSync(join(folder, 'latest.sig'), 'of an earlier release')
  expect(updateReleaseFolder(folder, null)).toEqual(['0.2.0', '0.1.10', '0.1.9'])
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  expect([read('latest'), read('install.sh'), read('versions')]).toEqual([
    '0.2.0\n',
    '0.2.0',
    '0.3.0-rc.1\n0.2.0\n0.1.10\n0.1.9\n',
  ])
  expect(existsSync(join(folder, 'latest.sig'))).toBe(false)
})

describe('the arguments', () => {
  const run = (...args: string[]) => {
    const command = [process.execPath, join(root, 'cli/release.ts'), ...args]
    const { exitCode, stderr, stdout } = Bun.spawnSync(command, { cwd: folder })
    return { exitCode, stderr: stderr.toString(), stdout: stdout.toString() }
  }

  test('name a target, a folder or an option that does not exist', () => {
    expect(run('--targets', 'linux-x64,plan9')).toEqual({
      exitCode: 2,
      stderr:
        'Error: There is no target plan9. There are: linux-x64, linux-arm64, linux-x64-musl, linux-arm64-musl, darwin-arm64.\n',
      stdout: '',
    })
    expect(run('--verify', folder)).toMatchObject({
      exitCode: 2,
      stderr: `Error: ${folder} has no provenance.json of a release, and no release ${version}.\n`,
    })
    expect(run('--fast')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("Unknown option '--fast'"),
    })
    expect(run('--without', 'image,wheels')).toMatchObject({
      exitCode: 2,
      stderr: 'Error: There is no part wheels. There are: packages, image, repositories.\n',
    })
    expect(readOptions(['--without', 'image'], {}).without).toEqual(['image'])
    expect(run('--help')).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('--snapshot') })
  })

  test('a snapshot is never signed', () => {
    const keys = { OTPD_RELEASE_KEY: '/key', OTPD_RELEASE_GPG_KEY: 'ada' }
    expect(readOptions(['--snapshot'], keys)).toMatchObject({ key: null, repositoryKey: null })
    expect(readOptions([], keys)).toMatchObject({ key: '/key', repositoryKey: 'ada' })
  })

  test('a release needs the clean commit of its tag', () => {
    const git = (...args: string[]) =>
      Bun.spawnSync(['git', '-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
        cwd: folder,
      })
    const refused = 'v1.2.3 is not the commit that is checked out'
    git('init', '-q')
    git('commit', '-q', '--allow-empty', '-m', 'one')
    expect(() => requireTag(folder, '1.2.3')).toThrow(`${refused}; --snapshot makes unsigned files.`)
    git('tag', 'v1.2.2')
    expect(() => requireTag(folder, '1.2.3')).toThrow(refused)
    git('tag', 'v1.2.3')
    expect(() => requireTag(folder, '1.2.3')).not.toThrow()
    writeFileSync(join(folder, 'new'), '')
    expect(() => requireTag(folder, '1.2.3')).toThrow(`${refused}, because files differ from it;`)
  })
})

test.skipIf(Bun.which('ssh-keygen') === null)(
  'the key that signs must be the one that installers know',
  () => {
    const [ours, other] = ['ours', 'other'].map((name) => {
      const path = join(folder, name)
      Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', path])
      return { path, publicKey: readFileSync(`${path}.pub`, 'utf8').trim() }
    })
    if (!ours || !other) throw new Error('There are no keys.')
    expect(() => requireKeyPair(ours.path, ours.publicKey)).not.toThrow()
    expect(() => requireKeyPair(ours.path, other.publicKey)).toThrow(
      'is not the key in .packaging/release.pub',
    )
    expect(() => requireKeyPair(join(folder, 'missing'), ours.publicKey)).toThrow('could not sign')
  },
)

test('a signature of macOS must cover every page of the file', () => {
  const file = signedMachO()
  expect(checkMachSignature(file)).toBe(2)
  file.writeUInt8(1, 5000)
  expect(() => checkMachSignature(file)).toThrow(
    'The code signature is of another file: 1 of 2 pages differ.',
  )
  file.writeUInt32LE(0, 32)
  expect(() => checkMachSignature(file)).toThrow('The executable has no code signature.')
  expect(() => checkMachSignature(Buffer.alloc(64))).toThrow('no 64-bit executable')
})

/** Makes the smallest file with a signature: one load command, 5100 bytes in two pages, and their digests. */
function signedMachO(): Buffer {
  const [end, pageBytes] = [5100, 4096]
  const file = Buffer.alloc(end + 200)
  file.writeUInt32LE(0xfeedfacf, 0)
  file.writeUInt32LE(1, 16)
  for (const [index, value] of [0x1d, 16, end, 200].entries()) file.writeUInt32LE(value, 32 + 4 * index)
  for (const [index, value] of [0xfade0cc0, 200, 1, 0, 20].entries())
    file.writeUInt32BE(value, end + 4 * index)
  const directory = end + 20
  file.writeUInt32BE(0xfade0c02, directory)
  for (const [offset, value] of [
    [16, 44],
    [28, 2],
    [32, end],
  ] as const)
    file.writeUInt32BE(value, directory + offset)
  file.writeUInt8(32, directory + 36)
  file.writeUInt8(12, directory + 39)
  for (const page of [0, 1]) {
    const content = file.subarray(page * pageBytes, Math.min((page + 1) * pageBytes, end))
    createHash('sha256')
      .update(content)
      .digest()
      .copy(file, directory + 44 + 32 * page)
  }
  return file
}
