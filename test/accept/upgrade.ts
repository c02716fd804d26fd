import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { packArchive } from '../../cli/release/archive.ts'
import { checksums, sha256 } from '../../cli/release/checksums.ts'
import { updateReleaseFolder } from '../../cli/release/folder.ts'
import { sign } from '../../cli/release/signature.ts'
import { hostTarget } from '../../cli/release/targets.ts'
import { sqliteMigrations } from '../../src/store/engine/migration-files.ts'
import { waitFor } from '../helpers/external-program.ts'
import { unlimitedPlan } from '../helpers/plans.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'
import { logIn } from '../helpers/webhook-client.ts'
import { startLoad } from './backups/load.ts'
import { boot, bootPrograms, checkFacts, installDebian } from './booted-system.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, run } from './tools.ts'

const root = resolve(import.meta.dir, '../..')

/** Values that `upgrade/probe.sh` prints in a booted Debian if `otpd upgrade` works. */
const expected: Record<string, RegExp> = {
  started: /^200 1\.0\.0$/,
  full: /^6 1\.0\.0 same 200 FILE_NOT_WRITABLE$/,
  left: /^otpd $/,
  cut: /^6 1\.0\.0 same 200 RELEASE_DAMAGED$/,
  forged: /^6 1\.0\.0 same 200 RELEASE_NOT_SIGNED$/,
  unsigned: /^6 1\.0\.0 same 200 RELEASE_NOT_SIGNED$/,
  refusing: /^6 1\.0\.0 same 200 UPGRADE_REFUSED$/,
  good: /^0 1\.0\.1 restarted 200 $/,
  // Two backups: one of `otpd upgrade`, and the server's own before it migrates.
  kept: /^otpd-1\.0\.0 2 otpd$/,
  again: /^0 1\.0\.1 same 200 $/,
  failures: /^0$/,
  end: /^yes$/,
}

/** Upgrades a server of systemd under a load of calls, from releases that are signed, broken, forged or do not fit. */
export const upgradeCheck: AcceptCheck = {
  name: 'upgrade',
  title:
    'otpd upgrade in a booted Debian, under calls: no acknowledged request is lost, a broken release changes nothing',
  needs: [...bootPrograms, 'ssh-keygen'],
  run: (print) =>
    inFolder(async (folder) => {
      const system = join(folder, 'system')
      await installDebian(system, [])
      const inside = (name: string) => join(system, 'root', name)
      const port = await findUnusedPort()
      const url = `http://127.0.0.1:${port}`
      await makeReleases(folder, inside('releases'))
      cpSync(join(folder, 'program-1.0.0/otpd'), inside('otpd'))
      cpSync(join(root, '.packaging/linux/otpd.service'), inside('otpd.service'))
      writeFileSync(inside('settings'), `URL=${url}\n`)
      const plan = Object.entries(unlimitedPlan).map(([name, value]) => `${name} = ${value}\n`)
      writeFileSync(
        inside('otpd.toml'),
        `[server]\nlisten = "127.0.0.1:${port}"\n[plans.free]\n${plan.join('')}`,
      )

      const script = join(import.meta.dir, 'upgrade/probe.sh')
      const booted = boot(system, { script, sharesNetwork: true })
      const waitForFile = (name: string) =>
        Promise.race([
          waitFor(name, () => existsSync(inside(name)) || undefined),
          booted.then((log) => Promise.reject(new Error(`The system ended before ${name}:\n${log}`))),
        ])
      await waitForFile('ready')
      const app = await (await logIn(url)).createApplication()
      const call = async (method: string, path: string, body?: object) => {
        const headers = { 'content-type': 'application/json', ...app.headers }
        const response = await fetch(`${url}${path}`, {
          method,
          headers,
          ...(body && { body: JSON.stringify(body) }),
        })
        return ((await response.json()) as { data?: { requestId: string; code: string; status: string } })
          .data
      }
      const early = await call('POST', '/v1/otp/send', { phone: '+14155550199' })
      const load = startLoad(url, app, 50)
      writeFileSync(inside('loaded'), '')
      await waitForFile('upgraded')
      await load.stop()
      const { acknowledged } = load
      const late = await call('POST', '/v1/otp/verify', { requestId: early?.requestId, code: early?.code })
      if (late?.status !== 'verified')
        throw new Error('A code of the old version is not verified by the new one.')
      for (const { id, kind } of acknowledged) {
        const status = (await call('GET', `/v1/otp/${id}`))?.status
        if (status === undefined || (kind === 'verified' && status !== 'verified'))
          throw new Error(`The request ${id} was acknowledged as ${kind}, and is ${status ?? 'lost'}.`)
      }
      writeFileSync(inside('checked'), '')
      checkFacts(system, await booted, expected, print)
      print(
        `${acknowledged.length} acknowledged, 0 lost, ${load.refused()} refused during all attempts and the restart`,
      )
    }),
}

/** Builds two versions, and makes folders of releases: one good, the others each with a fault. */
async function makeReleases(folder: string, releases: string) {
  const target = hostTarget()?.name
  if (target === undefined) throw new Error('There is no release for this machine.')
  const keygen = ['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f']
  for (const name of ['key', 'other-key']) await run(folder, [...keygen, join(folder, name)])
  const publish = (name: string, version: string, program: Uint8Array, key: string) => {
    const out = join(releases, name)
    const stem = `otpd-${version}-${target}`
    const archive = packArchive([{ name: `${stem}/otpd`, content: program, isExecutable: true }], 0)
    mkdirSync(join(out, version), { recursive: true })
    writeFileSync(join(out, version, `${stem}.tar.gz`), archive)
    writeFileSync(join(out, version, 'install.sh'), '')
    writeFileSync(
      join(out, version, 'SHA256SUMS'),
      checksums([{ name: `${stem}.tar.gz`, digest: sha256(archive) }]),
    )
    sign(join(out, version), 'SHA256SUMS', key)
    updateReleaseFolder(out, key)
    return out
  }
  const key = join(folder, 'key')
  await buildVersion(folder, '1.0.0', 0)
  const program = readFileSync(await buildVersion(folder, '1.0.1', 1))
  const good = publish('good', '1.0.1', program, key)
  const copyGood = (name: string) => {
    cpSync(good, join(releases, name), { recursive: true })
    return join(releases, name, '1.0.1')
  }
  copyGood('full')
  truncateSync(join(copyGood('cut'), `otpd-1.0.1-${target}.tar.gz`), 20_000_000)
  rmSync(join(copyGood('unsigned'), 'SHA256SUMS.sig'))
  publish('forged', '1.0.1', program, join(folder, 'other-key'))
  const error = { error: { code: 'START_REFUSED', message: 'The database is of another world.' } }
  const refusing = `#!/bin/sh\n[ "$1" != version ] || { echo 'otpd 1.0.1 (test)'; exit; }\necho '${JSON.stringify(error)}' >&2\nexit 9\n`
  publish('refusing', '1.0.1', Buffer.from(refusing), key)
}

/** Builds the program from a copy of the sources with another version, the key, and migrations more. @returns its path */
async function buildVersion(folder: string, version: string, migrations: number): Promise<string> {
  const sources = join(folder, `sources-${version}`)
  const skipped = ['.git', 'dist', 'node_modules', 'test']
  mkdirSync(sources)
  for (const name of readdirSync(root))
    if (!skipped.includes(basename(name))) cpSync(join(root, name), join(sources, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(sources, 'node_modules'))
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(sources, 'package.json'), JSON.stringify({ ...manifest, version }))
  cpSync(join(folder, 'key.pub'), join(sources, '.packaging/release.pub'))
  const sql = '-- expand\nalter table projects add column color text;\n'
  for (let index = 1; index <= migrations; index++) {
    const name = `${String(sqliteMigrations.length + index).padStart(4, '0')}_test.sql`
    for (const dialect of ['sqlite', 'postgres'])
      writeFileSync(join(sources, 'migrations', dialect, name), sql)
  }
  const out = join(folder, `program-${version}`)
  await run(sources, [process.execPath, 'cli/build.ts', '--out', out])
  return join(out, 'otpd')
}
