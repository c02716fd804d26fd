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
): ArchiveFile[] => [
  pack(`otpd-client-${inputs.version}.tgz`, client, inputs.seconds),
  packLauncher(inputs, built, client),
  ...built.map((one) => packPlatform(inputs, one, texts)),
]

/** Name of the package that has the executable of a target. */
const platformPackage = ({ name }: Target) => `@otpd/${name}`

/** Packs the executable of a target. npm installs it only on such a machine. */
function packPlatform(
  { version, seconds }: Inputs,
  { target, binary }: BuiltTarget,
  texts: readonly ArchiveFile[],
): ArchiveFile {
  const { name, os, arch, isMusl } = target
  const manifest = {
    name: platformPackage(target),
    version,
    description: `The executable of otpd for ${name}. Install otpd, which picks the right one.`,
    license: 'MIT',
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
): ArchiveFile {
  const clientManifest = client.find(({ name }) => name === 'package.json')
  if (!clientManifest) throw new Error('The client has no package.json.')
  const manifest = {
    ...JSON.parse(new TextDecoder().decode(clientManifest.content)),
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
