import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzip } from './archive.ts'
import { UsageError } from './options.ts'

const programs = { 'apt-ftparchive': 'apt-utils', createrepo_c: 'createrepo-c' }
const debArchitectures = ['amd64', 'arm64']

/** Names what this machine lacks to write the repositories, or null. */
export function missingForRepositories(): string | null {
  const missing = Object.entries(programs).filter(([program]) => Bun.which(program) === null)
  const packages = missing.map(([, name]) => name).join(' ')
  return missing.length === 0
    ? null
    : `${missing.map(([program]) => program).join(', ')} (apt-get install ${packages})`
}

/** @throws UsageError if gpg is missing or has no such key to sign with */
export function requireSecretKey(key: string) {
  if (Bun.which('gpg') === null) throw new UsageError('gpg is missing; it signs the repositories.')
  const command = ['gpg', '--batch', '--list-secret-keys', key]
  if (
    !Bun.spawnSync(command, { env: process.env, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).success
  )
    throw new UsageError(`gpg has no secret key ${key}, which OTPD_RELEASE_GPG_KEY names.`)
}

type RepositoryInputs = {
  /** Versions whose packages are offered, as folders of `out`. */
  versions: readonly string[]
  /** Time of the metadata, in seconds since 1970. */
  seconds: number
  /** OpenPGP key in the keyring of gpg, or null for repositories without signatures. */
  key: string | null
}

/**
 * Makes the folder of releases a repository of apt (`dists`) and of rpm (`repodata`): both refer to the packages in the
 * folders of the versions. A key signs the metadata, which has the digests of all packages; its public half is `otpd.asc`.
 *
 * @throws Error if a program fails, or gpg cannot sign with the key
 */
export function updateRepositories(out: string, { versions, seconds, key }: RepositoryInputs) {
  for (const name of ['dists', 'repodata', 'otpd.asc'])
    rmSync(join(out, name), { recursive: true, force: true })
  const release = writeAptMetadata(out, versions, seconds)
  const index = writeRpmMetadata(out, versions, seconds)
  if (key === null) return
  const gpg = (...args: string[]) => run(out, ['gpg', '--batch', '--yes', '--local-user', key, ...args])
  gpg('--digest-algo', 'SHA512', '--clearsign', '--output', join(release, '../InRelease'), release)
  gpg('--digest-algo', 'SHA512', '--armor', '--detach-sign', '--output', `${index}.asc`, index)
  writeFileSync(join(out, 'otpd.asc'), run(out, ['gpg', '--batch', '--armor', '--export', key]))
}

/** Writes the distribution `stable` with the component `main`. @returns path of its file Release */
function writeAptMetadata(out: string, versions: readonly string[], seconds: number): string {
  const folder = join(out, 'dists/stable')
  for (const architecture of debArchitectures) {
    const list = ['--arch', architecture, 'packages']
    const packages = versions.map((version) => run(out, ['apt-ftparchive', ...list, version])).join('')
    const binary = join(folder, `main/binary-${architecture}`)
    mkdirSync(binary, { recursive: true })
    writeFileSync(join(binary, 'Packages'), packages)
    writeFileSync(join(binary, 'Packages.gz'), gzip(Buffer.from(packages)))
  }
  const fields = {
    Origin: 'otpd',
    Label: 'otpd',
    Suite: 'stable',
    Codename: 'stable',
    Architectures: debArchitectures.join(' '),
    Components: 'main',
  }
  const options = Object.entries(fields).flatMap(([name, value]) => [
    '-o',
    `APT::FTPArchive::Release::${name}=${value}`,
  ])
  const text = run(out, ['apt-ftparchive', ...options, 'release', folder])
  // apt-ftparchive writes the time at which it runs.
  const date = new Date(1000 * seconds).toUTCString().replace('GMT', '+0000')
  const release = join(folder, 'Release')
  writeFileSync(release, text.replace(/^Date: .*$/m, `Date: ${date}`))
  return release
}

/** @returns path of repomd.xml */
function writeRpmMetadata(out: string, versions: readonly string[], seconds: number): string {
  const packages = versions.flatMap((version) =>
    readdirSync(join(out, version))
      .filter((name) => name.endsWith('.rpm'))
      .toSorted()
      .map((name) => `${version}/${name}\n`),
  )
  const list = join(out, '.packages')
  writeFileSync(list, packages.join(''))
  try {
    const revision = ['--revision', String(seconds), '--set-timestamp-to-revision']
    run(out, ['createrepo_c', '--quiet', '--no-database', ...revision, '--pkglist', list, out])
  } finally {
    rmSync(list)
  }
  return join(out, 'repodata/repomd.xml')
}

/** Runs a program in a folder. @returns what it prints @throws Error if it is missing or fails */
function run(folder: string, command: [string, ...string[]]): string {
  const [program] = command
  if (Bun.which(program) === null) throw new Error(`${program} is missing; it makes the repositories.`)
  const { success, stdout, stderr } = Bun.spawnSync(command, {
    cwd: folder,
    env: process.env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  if (!success) throw new Error(`${program} could not make the repositories: ${stderr.toString().trim()}`)
  return stdout.toString()
}
