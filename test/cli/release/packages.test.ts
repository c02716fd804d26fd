import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { buildPackages } from '../../../cli/release/packages.ts'
import { targets } from '../../../cli/release/targets.ts'
import { findProgram } from '../../helpers/external-program.ts'

/** Packages with a small file in the place of the executable. `npm run accept -- --only packages` installs real ones. */

const root = resolve(import.meta.dir, '../../..')
const isMissing = ['nfpm', 'dpkg-deb'].some((name) => findProgram(name) === null)
if (isMissing) process.stderr.write('Skipped: the packages. They need nfpm and dpkg-deb.\n')
const files = ['LICENSE', 'THIRD-PARTY-LICENSES', 'otpd.1', 'otpd.service', 'completions/otpd.bash']
  .concat('completions/_otpd', 'completions/otpd.fish', 'skills/otpd/SKILL.md')
  .map((name) => ({ name, content: Buffer.from(`${name}\n`) }))

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'otpd-packages-'))))
afterEach(() => rmSync(folder, { recursive: true }))

function build(name: string, mode: number) {
  const binary = join(folder, `binary-${name}`)
  writeFileSync(binary, 'program\n')
  chmodSync(binary, mode)
  const inputs = { root, version: '1.2.3', seconds: 1_767_225_600, binary, files }
  return targets
    .filter((target) => target.name === 'linux-x64' || target.name === 'linux-arm64')
    .flatMap((target) => buildPackages({ ...inputs, target }, join(folder, name)))
}

test.skipIf(isMissing)(
  'there is a deb and an rpm for each processor, with the same bytes in any folder',
  () => {
    const built = build('one', 0o755)
    expect(built.map(({ name }) => name)).toEqual([
      'otpd-1.2.3-1.x86_64.rpm',
      'otpd_1.2.3-1_amd64.deb',
      'otpd-1.2.3-1.aarch64.rpm',
      'otpd_1.2.3-1_arm64.deb',
    ])
    const again = build('two', 0o700)
    for (const [index, { content }] of built.entries())
      expect(Buffer.compare(content, again[index]?.content ?? Buffer.alloc(0))).toBe(0)
  },
)

test.skipIf(isMissing)('the deb has settings that its group can read, and units for its own path', () => {
  const [, deb] = build('one', 0o755)
  writeFileSync(join(folder, 'otpd.deb'), deb?.content ?? '')
  const run = (...args: string[]) => Bun.spawnSync(['dpkg-deb', ...args], { cwd: folder }).stdout.toString()
  const listed = run('--contents', 'otpd.deb')
  expect(listed).toMatch(/^-rw-r----- root\/otpd .*\.\/etc\/otpd\/otpd\.toml$/m)
  expect(listed).toMatch(/^drwxr-x--- root\/otpd .*\.\/etc\/otpd\/$/m)
  expect(listed).toMatch(/\.\/usr\/share\/otpd\/credential\.conf$/m)
  expect(listed).not.toMatch(/\.sh$/m)
  // Without these lintian reports errors.
  expect(listed).toMatch(/\.\/usr\/share\/doc\/otpd\/changelog\.Debian\.gz$/m)
  expect(run('--field', 'otpd.deb', 'Maintainer')).toMatch(/^.+ <\S+@\S+>\n$/)
  expect(run('--field', 'otpd.deb', 'Depends')).toBe('libc6 (>= 2.17)\n')
  run('--extract', 'otpd.deb', 'deb')
  const path = (name: string) => join(folder, 'deb/usr', name)
  expect(statSync(path('bin/otpd')).mode & 0o777).toBe(0o755)
  for (const unit of ['otpd.service', 'otpd-backup.service'])
    expect(readFileSync(path(`lib/systemd/system/${unit}`), 'utf8')).toContain('ExecStart=/usr/bin/otpd ')
})
