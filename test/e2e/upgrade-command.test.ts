import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { binaryPath, runToEnd, startServer } from '../helpers/binary.ts'
import { createInstallBed, hostTargetName, type InstallBed } from '../helpers/install-script.ts'
import { version } from '../../package.json'

// `otpd upgrade` of the compiled binary, from releases on a local server. This build has no key of releases: signatures are
// tested in test/cli/upgrade.

/** A new version, which is this binary but for the version that it names. */
const newProgram = (migrate = '') => `#!/bin/sh
case "$1" in
  version) echo 'otpd 9.9.9 (new)' ;;
  ${migrate}
  *) exec ${binaryPath} "$@" ;;
esac
${'# padding\n'.repeat(100_000)}`

let bed: InstallBed
beforeEach(() => {
  bed = createInstallBed()
  mkdirSync(dirname(bed.installed), { recursive: true })
  placeBinary(bed.installed)
  bed.publish('9.9.9', newProgram())
})
afterEach(() => bed.close())

/** Puts the binary of this build there, without a copy where the file system allows that. */
function placeBinary(path: string) {
  try {
    linkSync(binaryPath, path)
  } catch {
    cpSync(binaryPath, path)
  }
}

type Options = { program?: string; env?: Record<string, string> }

const environment = (env: Record<string, string> = {}) => ({
  PATH: process.env['PATH'] ?? '',
  HOME: bed.directory,
  OTPD_DOWNLOAD_URL: bed.url,
  // An upgrade makes a backup of the data; the default directory of root is one of the machine.
  ...(!('OTPD_DATABASE_URL' in env) && { OTPD_DATA_DIR: join(bed.directory, 'data') }),
  ...env,
})
const upgrade = (args: string[] = [], { program = bed.installed, env = {} }: Options = {}) =>
  runToEnd([program, 'upgrade', ...args], { env: environment(env), cwd: bed.directory })
const isUnchanged = () => Bun.file(bed.installed).size === Bun.file(binaryPath).size
const installedVersion = async () => (await runToEnd([bed.installed, 'version'], {})).stdout.split(' ')[1]
const filesBesideProgram = () => readdirSync(dirname(bed.installed))

test('tells whether there is a newer release', async () => {
  const newer = await upgrade(['--check', '--allow-unsigned'])
  expect(newer).toMatchObject({ exitCode: 8, stdout: `otpd 9.9.9 can be installed; this is ${version}.\n` })
  const named = ['--from', bed.url, '--allow-unsigned']
  const { stderr } = await upgrade(['--check', ...named], { env: { OTPD_DOWNLOAD_URL: '' } })
  expect(stderr).toBe(`Next: otpd upgrade ${named.join(' ')}\n`)
  bed.publish(version, newProgram())
  expect(await upgrade(['--check', '--allow-unsigned'])).toMatchObject({
    exitCode: 0,
    stdout: `otpd ${version} is the newest.\n`,
  })
  expect((await upgrade(['--allow-unsigned'])).stdout).toBe(`otpd ${version} is the newest.\n`)
  bed.publish('0.0.9', newProgram())
  expect(await upgrade(['--check', '--allow-unsigned'])).toMatchObject({
    exitCode: 0,
    stdout: `The newest release in ${bed.url} is 0.0.9, older than this otpd ${version}.\n`,
  })
  expect(await upgrade(['--allow-unsigned'])).toMatchObject({ exitCode: 6 })
  expect(isUnchanged()).toBe(true)
  const without = await upgrade(['--check'], { env: { OTPD_DOWNLOAD_URL: '' } })
  expect(without).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--from URL') })
})

test('replaces the program, keeps the old one, and install.sh goes back to it', async () => {
  const done = await upgrade(['--allow-unsigned'])
  expect(done).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('✓ otpd 9.9.9 installed as ') })
  expect(await installedVersion()).toBe('9.9.9')
  expect(filesBesideProgram()).toEqual(['otpd'])
  const kept = join(bed.prefix, `lib/otpd/otpd-${version}`)
  expect(Bun.file(kept).size).toBe(Bun.file(binaryPath).size)
  expect((await bed.run(['--rollback'])).stdout).toContain(`otpd ${version} is back`)
  expect(await installedVersion()).toBe(version)
})

test('writes the completions and the manual page again that install.sh has written, and no others', async () => {
  const page = bed.put('prefix/share/man/man1/otpd.1', 'that of the old program\n')
  const completion = bed.put('prefix/share/fish/vendor_completions.d/otpd.fish', '')
  expect((await upgrade(['--allow-unsigned'])).exitCode).toBe(0)
  expect(readFileSync(page, 'utf8')).toContain('.TH OTPD 1')
  expect(readFileSync(completion, 'utf8')).toContain('complete -c otpd')
  expect(readdirSync(join(bed.prefix, 'share')).toSorted()).toEqual(['fish', 'man'])
})

test('removes what an upgrade left that was killed, but not what another one is at', async () => {
  const { pid, exited } = Bun.spawn(['true'])
  await exited
  const other = `.otpd-${process.pid}.new`
  for (const name of [`bin/.otpd-${pid}.new`, `bin/${other}`, `lib/otpd/.otpd-${pid}.old`])
    bed.put(`prefix/${name}`, 'half')
  expect((await upgrade(['--allow-unsigned'])).exitCode).toBe(0)
  expect(filesBesideProgram().toSorted()).toEqual([other, 'otpd'])
  expect(readdirSync(join(bed.prefix, 'lib/otpd'))).toEqual([`otpd-${version}`])
})

test('removes the kept program of before that, and nothing next to a program outside of bin', async () => {
  bed.put('prefix/lib/otpd/otpd-0.0.1', 'older')
  expect((await upgrade(['--allow-unsigned'])).exitCode).toBe(0)
  expect(readdirSync(join(bed.prefix, 'lib/otpd'))).toEqual([`otpd-${version}`])
  const backup = 'otpd-2026-11-20T12-00-00-000Z.db'
  bed.put(`opt/${backup}`, 'data')
  const program = join(bed.directory, 'opt/otpd')
  placeBinary(program)
  expect((await upgrade(['--allow-unsigned'], { program })).exitCode).toBe(0)
  expect(readdirSync(dirname(program)).toSorted()).toEqual(['otpd', `otpd-${version}`, backup])
})

test('does not keep the new program as the old one, if another upgrade was faster', async () => {
  const gate = join(bed.directory, 'gate')
  const wait = `while [ ! -e ${gate} ]; do sleep 0.05; done`
  bed.publish('9.9.9', newProgram().replace('version)', `version) ${wait};`))
  const slower = upgrade(['--allow-unsigned'])
  while (!filesBesideProgram().some((name) => name.endsWith('.new'))) await Bun.sleep(10)
  bed.publish('9.9.9', newProgram())
  expect((await upgrade(['--allow-unsigned'])).exitCode).toBe(0)
  writeFileSync(gate, '')
  expect(await slower).toMatchObject({
    exitCode: 6,
    stderr: expect.stringContaining('was replaced while this upgrade was under way'),
  })
  expect(await installedVersion()).toBe('9.9.9')
  expect(readdirSync(join(bed.prefix, 'lib/otpd'))).toEqual([`otpd-${version}`])
  expect((await bed.run(['--rollback'])).stdout).toContain(`otpd ${version} is back`)
  expect(filesBesideProgram()).toEqual(['otpd'])
  expect(await installedVersion()).toBe(version)
})

test('takes releases from a folder', async () => {
  for (const [name, content] of bed.files) bed.put(`releases${name}`, content)
  const from = ['--from', 'releases', '--allow-unsigned', '--json']
  const { stdout } = await upgrade(from, { env: { OTPD_DOWNLOAD_URL: '' } })
  expect(JSON.parse(stdout).data).toMatchObject({ version: '9.9.9', replaced: version, isUpgraded: true })
  expect(bed.requests).toEqual([])
})

describe('changes nothing', () => {
  afterEach(async () => {
    expect(isUnchanged()).toBe(true)
    expect(filesBesideProgram()).toEqual(['otpd'])
    expect(await installedVersion()).toBe(version)
  })

  test('without a signature that it can check', async () => {
    const refused = await upgrade()
    expect(refused).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('--allow-unsigned') })
  })

  test('after a download that was cut or changed', async () => {
    const name = `/9.9.9/otpd-9.9.9-${hostTargetName}.tar.gz`
    const archive = Buffer.from(bed.files.get(name) ?? '')
    bed.files.set(name, archive.subarray(0, archive.length / 2))
    const cut = await upgrade(['--allow-unsigned'])
    expect(cut).toMatchObject({
      exitCode: 6,
      stderr: expect.stringContaining('is not the one in SHA256SUMS'),
    })
    bed.files.delete(name)
    expect((await upgrade(['--allow-unsigned'])).exitCode).toBe(5)
  })

  test('if the new program does not run here', async () => {
    bed.publish('9.9.9', 'not a program')
    const refused = await upgrade(['--allow-unsigned'])
    expect(refused.stderr).toContain('The new program does not run on this machine.')
  })

  test('on a full disk', async () => {
    // In blocks of 512 bytes. The signal would end the process; without it, the write fails as on a full disk.
    const limited = `trap '' XFSZ; ulimit -f 500; exec ${bed.installed} upgrade --allow-unsigned`
    const full = await runToEnd(['sh', '-c', limited], { env: environment(), cwd: bed.directory })
    expect(full).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('could not be written') })
  })

  test('if a package manager owns the program, and asks no server', async () => {
    const program = join(bed.directory, 'node_modules/@otpd/linux-x64/otpd')
    mkdirSync(dirname(program), { recursive: true })
    placeBinary(program)
    const npm = await upgrade(['--allow-unsigned'], { program })
    expect(npm).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('npm install otpd@latest') })
    const dpkg = bed.put('tools/dpkg', `#!/bin/sh\n[ "$1 $2" = "-S ${bed.installed}" ]\n`, 0o755)
    const env = { PATH: `${dirname(dpkg)}:${process.env['PATH']}` }
    const deb = await upgrade(['--allow-unsigned'], { env })
    expect(deb).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('apt install') })
    expect(bed.requests).toEqual([])
    const check = await upgrade(['--check', '--allow-unsigned'], { program })
    expect(check).toMatchObject({
      exitCode: 8,
      stderr: expect.stringContaining('Next: npm install otpd@latest'),
    })
  })
})

describe('next to a server', () => {
  const servers: Awaited<ReturnType<typeof startServer>>[] = []
  afterAll(async () => {
    for (const server of servers) await server.stop()
  })
  async function start(env: Record<string, string> = {}) {
    const server = await startServer({ binary: bed.installed, env })
    servers.push(server)
    return server
  }
  const isServing = async (url: string) => (await fetch(`${url}/v1/health/ready`)).status

  test('backs up its data, and leaves it running with the old program', async () => {
    const server = await start()
    const done = await upgrade(['--allow-unsigned', '--data-dir', server.dataDir])
    expect(done).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('Backup') })
    expect(done.stderr).toContain(`(process ${server.pid}) still runs the old program: restart it.`)
    expect(readdirSync(join(server.dataDir, 'backups'))).not.toEqual([])
    expect(await isServing(server.url)).toBe(200)
  })

  test('changes nothing if the new version cannot use the data', async () => {
    const error = {
      error: { code: 'START_REFUSED', message: 'The database is of another world.', hint: 'Stay.' },
    }
    bed.publish('9.9.9', newProgram(`migrate) echo '${JSON.stringify(error)}' >&2; exit 9 ;;`))
    const server = await start()
    const refused = await upgrade(['--allow-unsigned', '--data-dir', server.dataDir])
    expect(refused.exitCode).toBe(6)
    expect(refused.stderr).toContain('The database is of another world.')
    expect(isUnchanged()).toBe(true)
    expect(existsSync(join(server.dataDir, 'backups'))).toBe(false)
    expect(await isServing(server.url)).toBe(200)
  })

  /** Puts a systemctl there that writes down its calls, and shows a unit that runs the program. */
  function putSystemctl() {
    const calls = join(bed.directory, 'calls')
    const script = `#!/bin/sh
echo "$*" >>${calls}
case "$*" in
  *show*) printf 'ActiveState=active\\nExecStart={ path=${bed.installed} ; argv[]=${bed.installed} serve }\\n' ;;
esac
`
    return { calls, systemctl: bed.put('tools/systemctl', script, 0o755) }
  }

  test('does not restart a server that would refuse to start on the older database', async () => {
    const pending = { data: { applied: [], pending: ['0099_new'] } }
    bed.publish('9.9.9', newProgram(`migrate) echo '${JSON.stringify(pending)}' ;;`))
    const { calls, systemctl } = putSystemctl()
    const env = { PATH: `${dirname(systemctl)}:${process.env['PATH']}` }
    const server = await start({ OTPD_NO_MIGRATE: '1' })
    const done = await upgrade(['--allow-unsigned', '--data-dir', server.dataDir], { env })
    expect(done).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(`run otpd migrate up --data-dir ${server.dataDir} before`),
    })
    expect(await installedVersion()).toBe('9.9.9')
    expect(existsSync(calls) && readFileSync(calls, 'utf8')).not.toContain('restart')
    expect(await isServing(server.url)).toBe(200)
  })

  test('changes nothing if the new version cannot use the database of nodes', async () => {
    const error = { error: { code: 'START_REFUSED', message: 'The database is of another world.' } }
    bed.publish('9.9.9', newProgram(`migrate) echo '${JSON.stringify(error)}' >&2; exit 9 ;;`))
    const database = {
      OTPD_DATABASE_URL: 'postgres://otpd@127.0.0.1:1/otpd?sslmode=disable',
    }
    const env = {
      ...database,
      OTPD_MASTER_KEY: '0123456789abcdef'.repeat(4),
      OTPD_PUBLIC_URL: 'https://otp.example.com',
    }
    const refused = await upgrade(['--allow-unsigned'], { env })
    expect(refused).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('of another world') })
    expect(isUnchanged()).toBe(true)
    // In a shell without the settings of the service.
    const unchecked = await upgrade(['--allow-unsigned'], { env: database })
    expect(unchecked).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('otpd config check') })
  })

  test('restarts the unit of systemd that runs it, and waits until it is ready', async () => {
    const server = await start()
    const { calls, systemctl } = putSystemctl()
    const env = { PATH: `${dirname(systemctl)}:${process.env['PATH']}` }
    const done = await upgrade(['--allow-unsigned', '--data-dir', server.dataDir], { env })
    expect(done).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('restarted, and ready') })
    expect(readFileSync(calls, 'utf8')).toContain('restart otpd.service')
    // A unit that does not come back.
    writeFileSync(calls, '')
    placeBinaryAgain()
    const failing = readFileSync(systemctl, 'utf8').replace(
      'case',
      '[ "$1" != restart ] && [ "$2" != restart ] || exit 1\ncase',
    )
    writeFileSync(systemctl, failing)
    const failed = await upgrade(['--allow-unsigned', '--data-dir', server.dataDir, '--no-backup'], { env })
    expect(failed).toMatchObject({ exitCode: 8, stderr: expect.stringContaining('To go back: mv ') })
  })

  function placeBinaryAgain() {
    Bun.spawnSync(['rm', '-f', bed.installed])
    placeBinary(bed.installed)
  }
})
