import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { ArchiveFile } from './archive.ts'

/** A processor in the words of Debian and of container images. */
export type ImageArch = 'amd64' | 'arm64'

export type DebianPackage = { name: string; version: string; arch: ImageArch }

/** Returns the package URL (purl). */
export const packageUrl = ({ name, version, arch }: DebianPackage) =>
  `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${arch}`

/** Files of Debian that an executable with glibc needs, and the packages that they come from. */
type ImageBase = { files: ArchiveFile[]; packages: DebianPackage[] }

/** Debian 13, the stable release. */
const suite = 'trixie'
const packageNames = ['libc6', 'ca-certificates']
// The executable names the first four. The others are loaded to look up names.
const libraries = ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0']
const lookupLibraries = ['libnss_dns.so.2', 'libnss_files.so.2', 'libresolv.so.2']
/** Where the executable looks for the loader, and what Debian calls the folder of the libraries. */
const paths = {
  amd64: { loader: 'lib64/ld-linux-x86-64.so.2', libraries: 'lib/x86_64-linux-gnu' },
  arm64: { loader: 'lib/ld-linux-aarch64.so.1', libraries: 'lib/aarch64-linux-gnu' },
}

/** Names what this machine lacks to build images, or null. */
export const missingForImage = () =>
  Bun.which('mmdebstrap') === null ? 'mmdebstrap (apt-get install mmdebstrap)' : null

/**
 * Takes C library and certificates from the current packages of Debian stable, which are downloaded and unpacked, not run.
 *
 * @throws Error if the packages cannot be downloaded, or lack a file
 */
export function readDebianBase(arch: ImageArch): ImageBase {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-base-'))
  try {
    const tar = join(folder, 'base.tar')
    const options = [`--architectures=${arch}`, `--include=${packageNames.join(',')}`, '--variant=extract']
    run('mmdebstrap', '--quiet', ...options, '--format=tar', suite, tar)
    const unpacked = join(folder, 'base')
    mkdirSync(unpacked)
    // Devices need root.
    run('tar', '-xf', tar, '-C', unpacked, '--exclude=./dev/*', '--no-same-owner')
    return selectFiles(arch, join(unpacked, 'usr'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function selectFiles(arch: ImageArch, usr: string): ImageBase {
  const read = (path: string) => readFileSync(join(usr, path))
  const { loader, libraries: libraryFolder } = paths[arch]
  const certificates = readdirSync(join(usr, 'share/ca-certificates/mozilla')).toSorted()
  const files = [
    { name: loader, content: read(loader), isExecutable: true },
    ...[...libraries, ...lookupLibraries].map((name) => ({
      name: `${libraryFolder}/${name}`,
      content: read(`${libraryFolder}/${name}`),
    })),
    {
      name: 'etc/ssl/certs/ca-certificates.crt',
      content: Buffer.concat(certificates.map((name) => read(`share/ca-certificates/mozilla/${name}`))),
    },
    ...packageNames.map((name) => ({
      name: `usr/share/doc/${name}/copyright`,
      content: read(`share/doc/${name}/copyright`),
    })),
  ]
  return { files, packages: packageNames.map((name) => ({ name, arch, version: readVersion(usr, name) })) }
}

/** Reads the version of a package from the first line of its changelog: `glibc (2.41-12) trixie; urgency=medium`. */
function readVersion(usr: string, name: string): string {
  const folder = join(usr, 'share/doc', name)
  const changelog = readdirSync(folder).find((file) => /^changelog(\.Debian)?\.gz$/.test(file))
  const text = changelog === undefined ? '' : gunzipSync(readFileSync(join(folder, changelog))).toString()
  const [, version] = /^\S+ \(([^)]+)\)/.exec(text) ?? []
  if (version === undefined) throw new Error(`The version of Debian's ${name} could not be found.`)
  return version
}

function run(...command: string[]) {
  const { success, stderr } = Bun.spawnSync(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  if (!success) throw new Error(`${command[0]} failed: ${stderr.toString().trim()}`)
}
