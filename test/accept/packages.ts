import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { commonFiles } from '../../cli/release/contents.ts'
import { buildPackages } from '../../cli/release/packages.ts'
import { hostTarget } from '../../cli/release/targets.ts'
import { binaryPath } from '../helpers/binary.ts'
import { boot, bootPrograms, checkFacts, installDebian } from './booted-system.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder } from './tools.ts'

const root = resolve(import.meta.dir, '../..')

/** Values that `packages/probe.sh` prints in a booted Debian if the packages work. */
const expected: Record<string, RegExp> = {
  installed: /^disabled inactive$/,
  settings: /^640 root:otpd 750 root:otpd$/,
  started: /^200 700 otpd$/,
  killed: /^200 restarts=1$/,
  reload: /^0$/,
  upgrade: /^0 0\.0\.2-1 # mine$/,
  // One restart, during which about six calls are refused on an idle machine: a call each 50 ms.
  gaps: /^[01] 200$/,
  refused: /^1?\d of 400$/,
  exposure: /^(0\.\d|1\.[0-5])$/,
  exposure443: /^(0\.\d|1\.[0-7])$/,
  backup: /^success 1$/,
  timer: /^active$/,
  credential: /^200 success 0$/,
  log: /^0 of [1-9]\d*$/,
  mistake: /^failed status=9 restarts=0$/,
  removed: /^inactive 1 otpd\.toml$/,
  purged: /^mine\.env 1 2$/,
  again: /^1$/,
  rpm: /^200 otpd-0\.0\.2-1\.(x86_64|aarch64) active=active$/,
  verified: /^$/,
  erased: /^inactive 1$/,
  end: /^yes$/,
}

/** Installs, kills, upgrades and removes the packages on a system with systemd. */
export const packagesCheck: AcceptCheck = {
  name: 'packages',
  title: 'deb and rpm in a booted Debian: killed, upgraded under calls, removed, purged',
  needs: ['nfpm', ...bootPrograms],
  run: (print) =>
    inFolder(async (folder) => {
      const target = hostTarget()
      if (target === undefined) throw new Error('There are no packages for this machine.')
      const system = join(folder, 'system')
      await installDebian(system, ['rpm'])

      const files = commonFiles(root, 'Licences', '2026-01-01')
      const build = (version: string, where: string) =>
        buildPackages(
          { root, version, seconds: 1_767_225_600, target, binary: binaryPath, files },
          join(folder, where),
        )
      const packages = build('0.0.2', 'other/folder')
      build('0.0.2', 'package').forEach(({ name, content }, index) => {
        if (!Buffer.from(content).equals(packages[index]?.content ?? Buffer.alloc(0)))
          throw new Error(`${name} differs between two builds.`)
      })
      print('two builds gave the same bytes')
      for (const [when, built] of [
        ['old', build('0.0.1', 'package')],
        ['new', packages],
      ] as const)
        for (const { name, content } of built)
          writeFileSync(join(system, 'root', `${when}${name.slice(-4)}`), content)

      const script = join(import.meta.dir, 'packages/probe.sh')
      checkFacts(system, await boot(system, { script, sharesNetwork: false }), expected, print)
    }),
}
