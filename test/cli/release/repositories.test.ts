import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { buildPackages } from '../../../cli/release/packages.ts'
import { requireSecretKey, updateRepositories } from '../../../cli/release/repositories.ts'
import { findTarget } from '../../../cli/release/targets.ts'
import { findProgram } from '../../helpers/external-program.ts'

/** Packages with a small file in the place of the executable. `npm run accept -- --only repositories` installs real ones. */

const root = resolve(import.meta.dir, '../../..')
const needed = ['nfpm', 'apt-ftparchive', 'apt-get', 'createrepo_c', 'gpg']
const isMissing = needed.some((name) => findProgram(name) === null)
if (isMissing) process.stderr.write(`Skipped: the repositories. They need ${needed.join(', ')}.\n`)
const hasDnf = findProgram('dnf') !== null
if (!hasDnf) process.stderr.write('Skipped: the repository of rpm, read by dnf. It needs dnf.\n')

const seconds = 1_767_225_600
const key = 'releases@example.com'
let folder: string
let out: string

function run(...command: [string, ...string[]]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, {
    cwd: folder,
    env: { ...process.env, LC_ALL: 'C', HOME: folder },
    stdin: 'ignore',
  })
  return { exitCode, text: `${stdout.toString()}${stderr.toString()}` }
}

function publish(version: string) {
  const names = ['LICENSE', 'THIRD-PARTY-LICENSES', 'otpd.1', 'otpd.service', 'completions/otpd.bash']
    .concat('completions/_otpd', 'completions/otpd.fish', 'skills/otpd/SKILL.md')
    .map((name) => ({ name, content: Buffer.from(`${name}\n`) }))
  const binary = join(folder, 'program')
  writeFileSync(binary, `program of ${version}\n`)
  mkdirSync(join(out, version), { recursive: true })
  for (const name of ['linux-x64', 'linux-arm64']) {
    const target = findTarget(name)
    if (target === undefined) throw new Error(`There is no target ${name}.`)
    const inputs = { root, version, seconds, target, binary, files: names }
    for (const { name, content } of buildPackages(inputs, join(folder, 'package')))
      writeFileSync(join(out, version, name), content)
  }
}

const gpgHome = process.env['GNUPGHOME']
beforeAll(() => {
  if (isMissing) return
  folder = mkdtempSync(join(tmpdir(), 'otpd-repositories-'))
  out = join(folder, 'releases')
  mkdirSync(join(folder, 'keys'), { mode: 0o700 })
  process.env['GNUPGHOME'] = join(folder, 'keys')
  run('gpg', '--batch', '--passphrase', '', '--quick-generate-key', key, 'ed25519', 'sign', 'never')
  publish('1.2.2')
  publish('1.2.3')
})
afterAll(() => {
  if (isMissing) return
  run('gpgconf', '--kill', 'gpg-agent')
  if (gpgHome === undefined) delete process.env['GNUPGHOME']
  else process.env['GNUPGHOME'] = gpgHome
  rmSync(folder, { recursive: true })
})

const update = (versions: string[], signingKey: string | null = key) =>
  updateRepositories(out, { versions, seconds, key: signingKey })

/** Runs apt-get with lists and settings of its own, on the repository. */
function apt(...args: string[]) {
  const state = join(folder, 'apt')
  for (const path of ['lists/partial', 'cache/archives/partial', 'etc/sources.list.d', 'etc/preferences.d'])
    mkdirSync(join(state, path), { recursive: true })
  writeFileSync(
    join(state, 'etc/sources.list'),
    `deb [arch=amd64 signed-by=${join(out, 'otpd.asc')}] file:${out} stable main\n`,
  )
  writeFileSync(join(state, 'status'), '')
  const options = {
    'Dir::Etc': join(state, 'etc'),
    'Dir::State': state,
    'Dir::State::Lists': join(state, 'lists'),
    'Dir::State::Status': join(state, 'status'),
    'Dir::Cache': join(state, 'cache'),
    'APT::Architecture': 'amd64',
    // apt reads local files as another user, who may not enter this folder.
    'APT::Sandbox::User': 'root',
  }
  const settings = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  return run('apt-get', ...settings, ...args)
}

describe.skipIf(isMissing)('the repository of apt', () => {
  test('offers the newest version, with its digest and under a signature', () => {
    update(['1.2.3', '1.2.2'])
    expect(apt('update')).toMatchObject({ exitCode: 0, text: expect.not.stringMatching(/^[EW]:/m) })
    // The C library of an empty system is missing, so nothing but the file itself can be asked for.
    expect(apt('download', 'otpd')).toMatchObject({ exitCode: 0, text: expect.not.stringMatching(/^[EW]:/m) })
    const fetched = readFileSync(join(folder, 'otpd_1.2.3-1_amd64.deb'))
    expect(fetched.equals(readFileSync(join(out, '1.2.3/otpd_1.2.3-1_amd64.deb')))).toBe(true)
    expect(apt('download', 'otpd=1.2.2-1').exitCode).toBe(0)
  })

  test('offers what it is told to, and not every folder', () => {
    update(['1.2.2'])
    apt('update')
    expect(apt('download', 'otpd=1.2.3-1')).toMatchObject({
      exitCode: 100,
      text: expect.stringContaining("Version '1.2.3-1' for 'otpd' was not found"),
    })
  })

  test('is refused without a signature, under another key, after a change', () => {
    update(['1.2.3'], null)
    writeFileSync(join(out, 'otpd.asc'), run('gpg', '--armor', '--export', key).text)
    expect(apt('update').text).toContain('is no longer signed')
    update(['1.2.3'])
    run(
      'gpg',
      '--batch',
      '--passphrase',
      '',
      '--quick-generate-key',
      'other@example.com',
      'ed25519',
      'sign',
      'never',
    )
    writeFileSync(join(out, 'otpd.asc'), run('gpg', '--armor', '--export', 'other@example.com').text)
    expect(apt('update').text).toContain('NO_PUBKEY')
    update(['1.2.3'])
    appendFileSync(join(out, 'dists/stable/main/binary-amd64/Packages'), '\n')
    appendFileSync(join(out, 'dists/stable/main/binary-amd64/Packages.gz'), '\n')
    expect(apt('update').exitCode).toBe(100)
  })
})

/** Asks dnf, which knows no other repository. */
function dnf(...args: string[]) {
  const settings = [
    '[main]',
    `cachedir=${join(folder, 'dnf')}`,
    'plugins=0',
    '[otpd]',
    'name=otpd',
    `baseurl=file://${out}`,
    'gpgcheck=0',
    'repo_gpgcheck=1',
    `gpgkey=file://${join(out, 'otpd.asc')}`,
    '',
  ].join('\n')
  writeFileSync(join(folder, 'dnf.conf'), settings)
  const options = [
    '--config',
    join(folder, 'dnf.conf'),
    '--setopt=reposdir=/dev/null',
    '--releasever=1',
    '--refresh',
    '-y',
  ]
  return run('dnf', ...options, `--installroot=${join(folder, 'root')}`, ...args)
}

describe.skipIf(isMissing || !hasDnf)('the repository of rpm', () => {
  test('offers every version for each processor, with a signature that dnf checks', () => {
    update(['1.2.3', '1.2.2'])
    const format = ['--queryformat', '%{location} %{arch}']
    const listed = dnf('--quiet', 'repoquery', ...format)
    expect(
      listed.text
        .split('\n')
        .filter((line) => line.includes('.rpm'))
        .toSorted(),
    ).toEqual([
      '1.2.2/otpd-1.2.2-1.aarch64.rpm aarch64',
      '1.2.2/otpd-1.2.2-1.x86_64.rpm x86_64',
      '1.2.3/otpd-1.2.3-1.aarch64.rpm aarch64',
      '1.2.3/otpd-1.2.3-1.x86_64.rpm x86_64',
    ])
    expect(listed.exitCode).toBe(0)
    const newest = dnf('repoquery', '--latest-limit=1', '--requires', 'otpd.x86_64')
    expect(newest.text).toContain('glibc >= 2.17')
  })

  test('is refused after a change', () => {
    appendFileSync(join(out, 'repodata/repomd.xml'), '\n')
    expect(dnf('repoquery')).toMatchObject({
      exitCode: 1,
      text: expect.stringContaining('Bad GPG signature'),
    })
  })
})

test.skipIf(isMissing)('the same packages and key give the same files at any time', () => {
  const read = () =>
    [...new Bun.Glob('{dists,repodata}/**/*').scanSync(out)]
      .filter((name) => !/InRelease|\.asc$/.test(name))
      .toSorted()
      .map((name) => [name, readFileSync(join(out, name), 'utf8')])
  update(['1.2.3'])
  const first = read()
  update(['1.2.3'])
  expect(read()).toEqual(first)
  expect(readFileSync(join(out, 'dists/stable/Release'), 'utf8')).toContain(
    'Date: Thu, 01 Jan 2026 00:00:00 +0000\n',
  )
})

test.skipIf(isMissing)('a key that gpg does not have is refused before the build', () => {
  expect(() => requireSecretKey(key)).not.toThrow()
  expect(() => requireSecretKey('missing@example.com')).toThrow('gpg has no secret key missing@example.com')
})
