import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packArchive, type ArchiveFile } from './archive.ts'
import type { Target } from './targets.ts'

/** The executable of a target, and the files that every archive has. */
export type BuiltTarget = { target: Target; binary: string }

type Inputs = {
  root: string
  version: string
  /** Time of every file, in seconds since 1970. */
  seconds: number
}

/** Packs what npm installs: the client alone, `otpd` with the launcher, and a package for each target. */
export const packForNpm = (
  inputs: Inputs,
  built: readonly BuiltTarget[],
  client: readonly ArchiveFile[],
  texts: readonly ArchiveFile[],
): ArchiveFile[] => {
  const manifest = readManifest(client)
  return [
    pack(`otpd-client-${inputs.version}.tgz`, client, inputs.seconds),
    packLauncher(inputs, built, client, manifest),
    ...built.map((one) => packPlatform(inputs, one, texts, manifest)),
  ]
}

/** The `package.json` of the client. `repository` is that of the project, if it has one. */
type Manifest = { repository?: unknown }

function readManifest(client: readonly ArchiveFile[]): Manifest {
  const file = client.find(({ name }) => name === 'package.json')
  if (!file) throw new Error('The client has no package.json.')
  return JSON.parse(new TextDecoder().decode(file.content))
}

/** Name of the package that has the executable of a target. */
const platformPackage = ({ name }: Target) => `@otpd/${name}`

/** Packs the executable of a target. npm installs it only on such a machine. */
function packPlatform(
  { version, seconds }: Inputs,
  { target, binary }: BuiltTarget,
  texts: readonly ArchiveFile[],
  { repository }: Manifest,
): ArchiveFile {
  const { name, os, arch, isMusl } = target
  const manifest = {
    name: platformPackage(target),
    version,
    description: `The executable of otpd for ${name}. Install otpd, which picks the right one.`,
    license: 'MIT',
    // npm compares it with the origin of a package that is published with provenance.
    ...(repository !== undefined && { repository }),
    os: [os],
    cpu: [arch],
    ...(os === 'linux' && { libc: [isMusl ? 'musl' : 'glibc'] }),
    preferUnplugged: true,
  }
  const files = [
    packageJson(manifest),
    ...texts,
    { name: 'otpd', content: readFileSync(binary), isExecutable: true },
  ]
  return pack(`otpd-${name}-${version}.tgz`, files, seconds)
}

/** Packs `otpd`: the launcher, which starts the executable of this machine, and the library for backends. */
function packLauncher(
  { root, version, seconds }: Inputs,
  built: readonly BuiltTarget[],
  client: readonly ArchiveFile[],
  clientManifest: Manifest,
): ArchiveFile {
  const manifest = {
    ...clientManifest,
    bin: { otpd: 'launcher.cjs' },
    optionalDependencies: Object.fromEntries(built.map(({ target }) => [platformPackage(target), version])),
  }
  const launcher = readFileSync(join(root, '.packaging/npm/launcher.cjs'))
  const files = [
    packageJson(manifest),
    ...client.filter(({ name }) => name !== 'package.json'),
    { name: 'launcher.cjs', content: launcher, isExecutable: true },
  ]
  return pack(`otpd-${version}.tgz`, files, seconds)
}

const packageJson = (manifest: object): ArchiveFile => ({
  name: 'package.json',
  content: Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`),
})

/** Packs files in the form of `npm pack`. Not with npm itself, whose bytes depend on the version of Node. */
const pack = (name: string, files: readonly ArchiveFile[], seconds: number): ArchiveFile => ({
  name,
  content: packArchive(
    files.map((file) => ({ ...file, name: `package/${file.name}` })),
    seconds,
  ),
})
