import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { dataFiles } from '../../src/store/data-dir/data-dir.ts'
import { createInstallBed, fakeOtpd, hostTargetName, type InstallBed } from '../helpers/install-script.ts'

/** Says that a signature was not checked, and what that means. */
const unchecked = (reason: string) =>
  `The signature was not checked: ${reason}.\n  The checksum shows that the file is complete, not who made it.\n`

const shells = [['dash'], ['bash'], ['busybox', 'sh']].filter(([program = '']) => Bun.which(program) !== null)

let bed: InstallBed
beforeEach(() => void (bed = createInstallBed()))
afterEach(() => bed.close())

const installedText = () => readFileSync(bed.installed, 'utf8')
const env = () => ({ OTPD_DOWNLOAD_URL: bed.url })
const share = (path: string) => join(bed.prefix, 'share', path)

describe.each(shells)('install.sh in %s %s', (...shell) => {
  const command = shell.filter((word) => word !== undefined)
  const run = (...args: string[]) => bed.run(args, { shell: command, env: env() })

  test('installs the newest release, upgrades, goes back, and removes everything', async () => {
    bed.publish('0.1.0')
    const first = await run()
    expect(first.stderr).toBe(unchecked('this release is not signed'))
    expect(first.stdout).toContain(`otpd 0.1.0 installed as ${bed.installed}\n`)
    expect(readFileSync(share('man/man1/otpd.1'), 'utf8')).toBe('man of 0.1.0\n')
    expect(readFileSync(share('zsh/site-functions/_otpd'), 'utf8')).toBe('completion zsh of 0.1.0\n')

    bed.publish('0.2.0')
    expect((await run()).stdout).toContain('It replaces 0.1.0. To go back: install.sh --rollback')
    expect(installedText()).toBe(fakeOtpd('0.2.0'))
    expect(readdirSync(join(bed.prefix, 'lib/otpd'))).toEqual(['otpd-0.1.0'])
    expect((await run('--list')).stdout).toBe('0.2.0\n0.1.0\n')

    expect((await run('--rollback')).stdout).toContain('otpd 0.1.0 is back')
    expect(installedText()).toBe(fakeOtpd('0.1.0'))
    expect(readdirSync(join(bed.prefix, 'lib/otpd'))).toEqual(['otpd-0.2.0'])
    expect(readFileSync(share('man/man1/otpd.1'), 'utf8')).toBe('man of 0.1.0\n')

    expect((await run('--uninstall')).exitCode).toBe(0)
    const left = readdirSync(bed.prefix, { recursive: true, withFileTypes: true })
    expect(left.filter((entry) => !entry.isDirectory())).toEqual([])
    expect(readdirSync(bed.temporary)).toEqual([])
  })

  test('takes the version that is asked for, and says which there is', async () => {
    bed.publish('0.1.0')
    bed.publish('0.2.0')
    expect((await run('--version', 'v0.1.0')).stdout).toContain('otpd 0.1.0 installed')
    const missing = await run('--version', '9.9.9')
    expect(missing).toMatchObject({
      exitCode: 1,
      stderr: 'Error: There is no release 9.9.9. Newest: 0.2.0.\n',
    })
    expect((await run('--version', '../etc')).stderr).toContain('../etc is not a version.')
    expect(installedText()).toBe(fakeOtpd('0.1.0'))
  })

  test('never goes back to an older release than the one that is known, unless it is named', async () => {
    bed.publish('0.2.0')
    await run()
    for (const older of ['0.1.9', '0.2.0-rc.1']) {
      bed.publish(older)
      expect(await run()).toMatchObject({
        exitCode: 1,
        stderr: `Error: The newest release in ${bed.url} is ${older}, but 0.2.0 is installed; nothing was installed.
  To install it all the same: install.sh --version ${older}\n`,
      })
    }
    expect(installedText()).toBe(fakeOtpd('0.2.0'))
    expect((await run('--version', '0.1.9')).stdout).toContain('otpd 0.1.9 installed')

    const script = bed.changedScript(["release_version=''", "release_version='0.3.0'"])
    const behind = await bed.run([], { shell: command, env: env(), script })
    expect(behind.stderr).toContain('is 0.2.0-rc.1, but this installer is of 0.3.0; nothing was installed.')
    bed.publish('0.3.0')
    expect((await bed.run([], { shell: command, env: env(), script })).stdout).toContain(
      'otpd 0.3.0 installed',
    )
  })

  test('writes nothing if a download is cut, missing or not an archive', async () => {
    const path = `/0.1.0/otpd-0.1.0-${hostTargetName}.tar.gz`
    bed.publish('0.1.0')
    bed.files.set(path, (bed.files.get(path) ?? '').slice(0, -1))
    expect((await run()).stderr).toContain(`otpd-0.1.0-${hostTargetName}.tar.gz is not the one in SHA256SUMS`)
    bed.files.delete(path)
    expect((await run()).stderr).toContain('could not be downloaded; nothing was installed')
    bed.files.set('/0.1.0/SHA256SUMS', `${'0'.repeat(64)}  otpd-0.1.0-plan9-x64.tar.gz\n`)
    expect((await run()).stderr).toContain(
      `Release 0.1.0 has no file for ${hostTargetName}; nothing was installed`,
    )
    bed.files.set('/latest', '<html>\n')
    expect((await run()).stderr).toContain('/latest does not contain a version; nothing was installed.')
    bed.files.delete('/latest')
    expect(await run()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('404') })
    expect(existsSync(bed.prefix)).toBe(false)
  })

  test('says why the archive could not be unpacked, such as for a full disk', async () => {
    bed.publish('0.1.0', `${fakeOtpd('0.1.0')}${'# padding\n'.repeat(200_000)}`)
    // In blocks of 512 bytes. The signal would end the program; without it, the write fails as on a full disk.
    const limited = [...command, '-c', `trap '' XFSZ; ulimit -f 500; exec ${command.join(' ')} "$0" "$@"`]
    const full = await bed.run([], { shell: limited, env: env() })
    expect(full.exitCode).toBe(1)
    expect(full.stderr).toContain(
      `otpd-0.1.0-${hostTargetName}.tar.gz could not be unpacked to ${bed.prefix}/bin; nothing was installed.`,
    )
    expect(full.stderr).toMatch(
      /tar: .*(Wrote only|File too large|write error).*\n {2}If the disk is full, make room/i,
    )
    expect(readdirSync(join(bed.prefix, 'bin'))).toEqual([])
  })

  test('names what the machine lacks before it downloads anything', async () => {
    bed.publish('0.1.0')
    const programs = join(bed.directory, 'programs')
    const fake = (name: string, body: string) => bed.put(`programs/${name}`, `#!/bin/sh\n${body}\n`, 0o755)
    const environment = { ...env(), PATH: `${programs}:${process.env.PATH ?? ''}` }
    const script = bed.changedScript(
      ['/lib/ld-musl-', join(bed.directory, 'lib/ld-musl-')],
      ['/usr/lib/libstdc++.so.6', join(bed.directory, 'lib/libstdc++.so.6')],
      ['-e /lib/libstdc++.so.6', '-e /dev/null/none'],
      ['/proc/cpuinfo', join(bed.directory, 'cpuinfo')],
    )
    const refusal = async () => (await bed.run([], { shell: command, env: environment, script })).stderr
    bed.put('cpuinfo', 'flags : fpu sse4_2\n')

    fake('getconf', 'echo glibc 2.12')
    expect(await refusal()).toBe('Error: otpd needs glibc 2.17 or later; this is glibc 2.12.\n')
    fake('getconf', 'exit 1')
    expect(await refusal()).toBe('Error: otpd needs glibc or musl, and neither was found.\n')
    bed.put('lib/ld-musl-x86_64.so.1', '#!/bin/sh\necho "Version 1.2.3" >&2; exit 1\n', 0o755)
    expect(await refusal()).toBe('Error: otpd needs musl 1.2.4 or later; this is 1.2.3.\n')
    bed.put('lib/ld-musl-x86_64.so.1', '#!/bin/sh\necho "Version 1.2.5" >&2; exit 1\n', 0o755)
    expect(await refusal()).toBe('Error: otpd needs libstdc++ here: apk add libstdc++\n')
    fake('uname', 'case $1 in -s) echo Linux ;; -m) echo x86_64 ;; -r) echo 4.18.0-553.el8 ;; esac')
    expect(await refusal()).toBe('Error: otpd needs Linux 5.1 or later; this is 4.18.0-553.el8.\n')
    fake('uname', 'case $1 in -s) echo Linux ;; -m) echo x86_64 ;; -r) echo 6.1.0-18-amd64 ;; esac')
    bed.put('cpuinfo', 'flags : fpu\n')
    expect(await refusal()).toBe('Error: otpd needs a processor with SSE4.2, which this one has not.\n')
    fake('uname', 'case $1 in -s) echo Darwin ;; -m) echo x86_64 ;; esac')
    expect(await refusal()).toContain('There is no release for Macs with Intel processors.')
    fake('sysctl', '[ "$2" = sysctl.proc_translated ] && echo 1')
    expect(await refusal()).toContain('Release 0.1.0 has no file for darwin-arm64')
    bed.requests.length = 0
    fake('uname', 'case $1 in -s) echo Linux ;; -m) echo aarch64 ;; -r) echo 6.1.0-rpi-v8 ;; esac')
    fake('getconf', 'case $1 in LONG_BIT) echo 32 ;; *) echo glibc 2.36 ;; esac')
    expect(await refusal()).toBe('Error: otpd needs a system of 64 bits; the programs of this one have 32.\n')
    fake('uname', 'case $1 in -s) echo Linux ;; -m) echo riscv64 ;; esac')
    expect(await refusal()).toBe('Error: There is no release for riscv64 processors.\n')
    expect([bed.requests, existsSync(bed.prefix)]).toEqual([[], false])
  })
})

describe.skipIf(Bun.which('ssh-keygen') === null)('install.sh with a key', () => {
  const makeKey = (name: string) => {
    const path = join(bed.directory, name)
    Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', path])
    return { path, line: readFileSync(`${path}.pub`, 'utf8').trim() }
  }
  const sign = (text: string, key: string, namespace = 'otpd-release') => {
    const path = bed.put('SHA256SUMS', text)
    rmSync(`${path}.sig`, { force: true })
    Bun.spawnSync(['ssh-keygen', '-Y', 'sign', '-q', '-f', key, '-n', namespace, path])
    return readFileSync(`${path}.sig`, 'utf8')
  }

  test('installs a release that is signed with it, and none that is not', async () => {
    const [key, other] = [makeKey('key'), makeKey('other')]
    const script = bed.changedScript(["release_key=''", `release_key='${key.line}'`])
    const run = (...args: string[]) => bed.run(args, { script, env: env() })
    const refused = "Error: SHA256SUMS is not signed by otpd's key; nothing was installed.\n"
    const sums = bed.publish('0.1.0')
    const newest = (version: string, ...how: [key: string, namespace?: string]) => {
      bed.files.set('/latest', `${version}\n`)
      bed.files.set('/latest.sig', sign(`${version}\n`, ...how))
    }

    for (const forge of [
      () => bed.files.delete('/latest.sig'),
      () => newest('0.1.0', other.path, 'otpd-latest'),
      () => newest('0.1.0', key.path, 'otpd-release'),
    ]) {
      forge()
      expect(await run()).toMatchObject({ exitCode: 1, stderr: refused.replace('SHA256SUMS', 'latest') })
    }
    newest('0.1.0', key.path, 'otpd-latest')
    expect(await run()).toMatchObject({ exitCode: 1, stderr: refused })
    for (const wrong of [
      sign(sums, other.path),
      sign(sums, key.path, 'file'),
      sign(`${sums}\n`, key.path),
      '-',
    ]) {
      bed.files.set('/0.1.0/SHA256SUMS.sig', wrong)
      expect(await run('--allow-unsigned')).toMatchObject({ exitCode: 1, stderr: refused })
    }
    expect(existsSync(bed.prefix)).toBe(false)
    bed.files.set('/0.1.0/SHA256SUMS.sig', sign(sums, key.path))
    expect(await run('--require-signature')).toMatchObject({ exitCode: 0, stderr: '' })
    bed.files.delete('/0.1.0/SHA256SUMS.sig')
    expect(await run('--allow-unsigned')).toMatchObject({
      exitCode: 0,
      stderr: unchecked('this release is not signed'),
    })
  })

  test('says that it cannot check without ssh-keygen, or with an old one', async () => {
    const key = makeKey('key')
    const sums = bed.publish('0.1.0')
    bed.files.set('/0.1.0/SHA256SUMS.sig', sign(sums, key.path))
    bed.files.set('/latest.sig', sign('0.1.0\n', key.path, 'otpd-latest'))
    const change = ["release_key=''", `release_key='${key.line}'`] as [string, string]
    const without = bed.changedScript(change, ['! has ssh-keygen', '! has ssh-keygen-of-another-world'])
    expect(await bed.run([], { script: without, env: env() })).toMatchObject({
      exitCode: 0,
      stderr: unchecked('ssh-keygen is missing'),
    })
    expect(await bed.run(['--require-signature'], { script: without, env: env() })).toMatchObject({
      exitCode: 1,
      stderr: 'Error: The signature was not checked: ssh-keygen is missing. Nothing was installed.\n',
    })
    bed.put('old/ssh-keygen', '#!/bin/sh\necho "unknown option -- Y" >&2; exit 1\n', 0o755)
    const path = `${join(bed.directory, 'old')}:${process.env.PATH ?? ''}`
    const script = bed.changedScript(change)
    expect((await bed.run([], { script, env: { ...env(), PATH: path } })).stderr).toBe(
      unchecked('ssh-keygen is older than 8.2'),
    )
  })
})

test.skipIf(Bun.which('curl') === null)('a download that stands still is given up', async () => {
  bed.publish('0.1.0')
  const stalling = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      const content = bed.files.get(pathname)
      if (content === undefined) return new Response(null, { status: 404 })
      if (!pathname.endsWith('.gz')) return new Response(Buffer.from(content))
      const stream = new ReadableStream({
        start: (controller) => controller.enqueue(Buffer.from(content).subarray(0, 9)),
      })
      return new Response(stream, { headers: { 'content-length': String(content.length) } })
    },
  })
  const script = bed.changedScript(['--speed-time 60', '--speed-time 1'])
  const stopped = await bed.run([], {
    script,
    env: { OTPD_DOWNLOAD_URL: `http://127.0.0.1:${stalling.port}` },
  })
  expect(stopped).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('could not be downloaded') })
  expect(existsSync(bed.installed)).toBe(false)
  await stalling.stop(true)
})

test('--rollback needs an older version, and changes nothing if that one refuses the database', async () => {
  const back = () => bed.run(['--rollback'], { env: { OTPD_DATA_DIR: join(bed.directory, 'data') } })
  const nothing = `Error: There is nothing to go back to in ${bed.prefix}/lib/otpd.\n`
  expect(await back()).toMatchObject({ exitCode: 1, stderr: nothing })
  bed.publish('0.1.0', fakeOtpd('0.1.0', 9))
  await bed.run([], { env: env() })
  await bed.run([], { env: env() })
  expect(await back()).toMatchObject({ exitCode: 1, stderr: nothing })
  bed.publish('0.2.0')
  await bed.run([], { env: env() })
  bed.put('data/otpd.db', '')
  const refused = await back()
  expect(refused.exitCode).toBe(1)
  expect(refused.stderr).toContain('otpd 0.1.0 cannot use the database')
  expect(refused.stderr).toContain('the database is newer than this otpd')
  expect(installedText()).toBe(fakeOtpd('0.2.0'))
  expect(readdirSync(join(bed.prefix, 'lib/otpd'))).toEqual(['otpd-0.1.0'])
})

test('--purge removes data and logins after a yes, and lists what otpd did not make', async () => {
  const data = join(bed.directory, '.local/share/otpd')
  const config = join(bed.directory, '.config/otpd')
  const { tls, backups, ...files } = dataFiles(data)
  const paths = [...Object.values(files), `${files.database}-wal`, `${files.masterKey}.before-2026`]
  for (const name of ['account.json', 'certificate.json', 'last-failure.json']) paths.push(join(tls, name))
  for (const name of ['otpd-2026.db', 'before-migration-2026.db-wal', 'mine.db', 'mine.db.hmac'])
    paths.push(join(backups, name))
  const own = [join(config, 'server.toml'), join(backups, 'notes of mine.txt'), join(data, 'notes.txt')]
  for (const path of [...paths, ...own, join(config, 'credentials.json')]) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '')
  }
  bed.publish('0.1.0')
  await bed.run(['--no-extras'], { env: env() })
  expect(existsSync(join(bed.prefix, 'share'))).toBe(false)
  const root = process.getuid?.() === 0 ? { OTPD_DATA_DIR: data } : {}
  const asked = await bed.run(['--purge'], { shell: ['setsid', 'sh'], env: root })
  expect(asked).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('Nothing was removed.') })
  expect(existsSync(bed.installed)).toBe(true)
  const program = bed.put('programs/otpd', readFileSync(Bun.which('sleep') ?? ''), 0o755)
  const server = Bun.spawn([program, '60'])
  writeFileSync(files.serverRecord, `{"pid":${server.pid},"url":"http://127.0.0.1:8080"}`)
  const running = await bed.run(['--purge', '--yes'], { env: root })
  expect(running.stderr).toContain(`A server runs on ${data} (process ${server.pid}); nothing was removed.`)
  expect(existsSync(bed.installed)).toBe(true)
  server.kill()
  await server.exited
  expect(await bed.run(['--purge', '--yes'], { env: root })).toMatchObject({
    exitCode: 0,
    stderr: `Kept, because otpd did not make it:\n${own.map((path) => `  ${path}\n`).join('')}`,
  })
  expect([readdirSync(data).toSorted(), readdirSync(config), existsSync(bed.installed)]).toEqual([
    ['backups', 'notes.txt'],
    ['server.toml'],
    false,
  ])
})

test('root on a system with systemd learns the package of the release, or of the unit if there is none', async () => {
  const sums = bed.publish('0.1.0')
  mkdirSync(join(bed.directory, 'systemd'))
  bed.put('programs/id', '#!/bin/sh\necho 0\n', 0o755)
  bed.put('programs/dpkg', '#!/bin/sh\necho amd64\n', 0o755)
  const script = bed.changedScript(['/run/systemd/system', join(bed.directory, 'systemd')])
  const PATH = `${join(bed.directory, 'programs')}:${process.env.PATH ?? ''}`
  const lastLine = async () => {
    const { stdout } = await bed.run([], { env: { ...env(), PATH }, script })
    return stdout.trimEnd().split('\n').at(-1)
  }
  expect(await lastLine()).toBe('To run it as a service, see the systemd unit: otpd docs operating')
  bed.files.set('/0.1.0/SHA256SUMS', `${sums}${'0'.repeat(64)}  otpd_0.1.0-1_amd64.deb\n`)
  expect(await lastLine()).toBe(
    'To run it as a service, install otpd_0.1.0-1_amd64.deb of this release instead: it has a user and a unit.',
  )
})

test('the guide names only options that install.sh has', async () => {
  const guide = readFileSync(join(import.meta.dir, '../../src/docs/install.md'), 'utf8')
  const { stdout } = await bed.run(['--help'])
  const named = [...guide.matchAll(/`(?:install\.sh )?(--(?:[a-z]+-)*[a-z]+)[^`]*`/g)].map(
    ([, flag = '']) => flag,
  )
  expect(named.length).toBeGreaterThan(8)
  const ofOtherPrograms = ['--verify', '--without', '--data-dir', '--domain']
  expect(named.filter((flag) => !ofOtherPrograms.includes(flag) && !stdout.includes(flag))).toEqual([])
})
