import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { git } from './git.ts'
import { findTarget, targetNames, type Target } from './targets.ts'

/** The parts of a release that need tools beyond Node and npm. */
const releaseParts = ['packages', 'image', 'repositories'] as const
export type ReleasePart = (typeof releaseParts)[number]

export type ReleaseOptions = {
  targets: Target[]
  /** Parts to leave out. */
  without: ReleasePart[]
  out: string
  /** Folder of a release to compare with, instead of writing one. */
  verify: string | null
  isSnapshot: boolean
  /** SSH key that signs, or null. */
  key: string | null
  /** OpenPGP key that signs the repositories, or null. */
  repositoryKey: string | null
}

/** A release that cannot start: a wrong argument, or a commit that is not the version's. */
export class UsageError extends Error {}

const usage = `npm run release -- [--targets linux-x64,…] [--without packages,…] [--out dist/release] [--snapshot]
npm run release -- --verify FOLDER

  --targets NAMES   build some of: ${targetNames.join(', ')}
  --without PARTS   leave out packages (deb and rpm, which need nfpm), image (which needs mmdebstrap) or
                    repositories (of apt and rpm, which need apt-utils and createrepo-c)
  --out FOLDER      where to write the folder of the version (default: dist/release)
  --snapshot        build what is checked out, without a tag and without a signature
  --verify FOLDER   build again and compare byte by byte with a release, like dist/release/0.1.0

OTPD_RELEASE_KEY names the SSH key that signs SHA256SUMS, OTPD_RELEASE_GPG_KEY the key of gpg that signs the repositories.`

/** Reads the arguments. @throws UsageError for a wrong one; `--help` prints the usage and ends the process */
export function readOptions(args: string[], environment: NodeJS.ProcessEnv): ReleaseOptions {
  const options = {
    targets: { type: 'string', default: targetNames.join(',') },
    without: { type: 'string', default: '' },
    out: { type: 'string', default: 'dist/release' },
    verify: { type: 'string' },
    snapshot: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  } as const
  const { values } = parse(() => parseArgs({ args, options }))
  if (values.help) {
    process.stdout.write(`${usage}\n`)
    process.exit(0)
  }
  const names = [...new Set(values.targets.split(','))]
  const found = names.map((name) => {
    const target = findTarget(name)
    if (!target) throw new UsageError(`There is no target ${name}. There are: ${targetNames.join(', ')}.`)
    return target
  })
  const without = values.without.split(',').filter((name) => name !== '')
  const unknown = without.find((name) => !isReleasePart(name))
  if (unknown !== undefined)
    throw new UsageError(`There is no part ${unknown}. There are: ${releaseParts.join(', ')}.`)
  const { out, verify, snapshot: isSnapshot } = values
  const verifyFolder = verify === undefined ? null : resolve(verify)
  return {
    targets: found,
    without: without.filter(isReleasePart),
    out: resolve(out),
    verify: verifyFolder,
    isSnapshot,
    key: isSnapshot ? null : (environment['OTPD_RELEASE_KEY'] ?? null),
    repositoryKey: isSnapshot ? null : (environment['OTPD_RELEASE_GPG_KEY'] ?? null),
  }
}

export const isReleasePart = (name: string): name is ReleasePart => releaseParts.some((part) => part === name)

function parse<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
  }
}

/** Requires that the clean commit of the version's tag is checked out. @throws UsageError */
export function requireTag(root: string, version: string) {
  const tags = git(root, 'tag', '--points-at', 'HEAD')?.split('\n') ?? []
  const isClean = git(root, 'status', '--porcelain') === ''
  if (!tags.includes(`v${version}`) || !isClean)
    throw new UsageError(
      `v${version} is not the commit that is checked out${isClean ? '' : ', because files differ from it'}; --snapshot makes unsigned files.`,
    )
}
