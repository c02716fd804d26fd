/**
 * Builds the files of a release into `dist/release/VERSION`: an archive for each target, packages, a container image, the
 * client, checksums with a signature, the list of contents (SBOM), licences and provenance. `dist/release` itself becomes a
 * repository of apt, of rpm and of Helm. Usage: `npm run release -- --help`.
 *
 * Exit codes: 0 done, 1 a build or smoke run failed or files differ, 2 wrong use, 8 something was left out.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { updateChartIndex } from './release/chart.ts'
import { readReleaseKey } from './release/install-script.ts'
import { requireKeyPair } from './release/key-pair.ts'
import { listDifferences } from './release/compare.ts'
import { findRelease, updateReleaseFolder } from './release/folder.ts'
import { readCommit, readCommitTime } from './release/git.ts'
import {
  isReleasePart,
  readOptions,
  requireTag,
  UsageError,
  type ReleaseOptions,
  type ReleasePart,
} from './release/options.ts'
import { hasPackages } from './release/packages.ts'
import { produceRelease, type LeftOut, type ReleaseInputs } from './release/produce.ts'
import { missingForRepositories, requireSecretKey, updateRepositories } from './release/repositories.ts'
import { sign } from './release/signature.ts'
import { findTarget } from './release/targets.ts'
import { version } from './version.ts'

const root = resolve(import.meta.dir, '..')
const print = (line: string) => void process.stdout.write(`${line}\n`)

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`Error: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2), process.env)
  const inputs = readInputs()
  if (options.verify !== null) {
    const released = findRelease(options.verify, version)
    return await withWorkFolder(join(root, 'dist'), (work) => verify(released, inputs, work))
  }
  if (!options.isSnapshot) requireTag(root, version)
  const publicKey = readReleaseKey(root)
  if (options.key !== null && publicKey !== '') requireKeyPair(options.key, publicKey)
  if (options.repositoryKey !== null) requireSecretKey(options.repositoryKey)
  return await withWorkFolder(options.out, (work) => release(options, inputs, work))
}

function readInputs(): ReleaseInputs {
  const [commit, at] = [readCommit(root), readCommitTime(root)]
  if (commit === null || at === null)
    throw new UsageError('A release is built in a checkout with its repository.')
  return { root, version, commit, at }
}

async function release(options: ReleaseOptions, inputs: ReleaseInputs, work: string): Promise<number> {
  const { targets, without, key, repositoryKey, isSnapshot, out } = options
  const folder = join(work, version)
  const plan = { ...inputs, targets, without, keepsUntried: isSnapshot, skipsSmokeRuns: false, print }
  const { untried, absent: absentFiles } = await produceRelease(plan, folder)
  if (untried.length === targets.length && !isSnapshot)
    throw new Error('No target could be tried; there is no release.')
  if (key !== null) sign(folder, 'SHA256SUMS', key)

  const destination = join(out, version)
  rmSync(destination, { recursive: true, force: true })
  renameSync(folder, destination)
  const offered = updateReleaseFolder(out, key)
  updateChartIndex(root, out, offered)
  const absent = [...absentFiles, ...makeRepositories(options, inputs, offered, absentFiles)]
  print(`${destination}\n`)
  print(readFileSync(join(destination, 'SHA256SUMS'), 'utf8'))
  if (!existsSync(join(destination, 'otpd.rb')))
    print('No formula for Homebrew: .packaging/release.url has no address of the releases.')
  if (key !== null && readReleaseKey(root) === '')
    print('Signed with a key that no installer knows: .packaging/release.pub is empty.')
  const leftOut = isSnapshot ? absent : [...untried, ...absent]
  for (const { name, missing } of leftOut) print(`Left out: ${name}, because this machine lacks ${missing}.`)
  if (isSnapshot)
    for (const { name, missing } of untried)
      print(`Not tried: ${name}, because this machine lacks ${missing}.`)
  if (leftOut.length > 0)
    print('The release is incomplete: exit code 8. --targets and --without leave parts out on purpose.')
  if (key === null)
    print(`Not signed: ${isSnapshot ? 'a snapshot never is' : 'OTPD_RELEASE_KEY is not set'}.`)
  if (repositoryKey === null && !isSnapshot && existsSync(join(out, 'dists')))
    print('The repositories are not signed: OTPD_RELEASE_GPG_KEY is not set.')
  const isUnsigned = key === null || repositoryKey === null
  return untried.length > 0 || absent.length > 0 || (isUnsigned && !isSnapshot) ? 8 : 0
}

/** Makes the folder of releases a repository of apt and rpm, if there are packages. @returns the part if it was left out */
function makeRepositories(
  { targets, without, out, repositoryKey: key }: ReleaseOptions,
  { at }: ReleaseInputs,
  versions: string[],
  absent: LeftOut['absent'],
): LeftOut['absent'] {
  const left = [...without, ...absent.map(({ name }) => name)]
  if (!targets.some(hasPackages) || left.includes('packages') || left.includes('repositories')) return []
  const missing = missingForRepositories()
  if (missing !== null) return [{ name: 'repositories', missing }]
  updateRepositories(out, { versions, seconds: Date.parse(at) / 1000, key })
  return []
}

/** Builds the targets of a release again and compares. */
async function verify(released: string, inputs: ReleaseInputs, work: string): Promise<number> {
  const { names, without, commit } = readProvenance(released)
  if (commit !== inputs.commit)
    throw new UsageError(`${released} was built from ${commit}. Check that out first, without changes.`)
  const targets = names.flatMap((name) => findTarget(name) ?? [])
  const folder = join(work, 'again')
  const plan = { ...inputs, targets, without, keepsUntried: true, skipsSmokeRuns: true, print }
  await produceRelease(plan, folder)
  const different = listDifferences(released, folder)
  for (const name of different) print(`differs: ${name}`)
  if (different.length === 0) print(`${released} is what ${commit} builds: ${names.join(', ')}.`)
  return different.length === 0 ? 0 : 1
}

type Provenance = { names: string[]; without: ReleasePart[]; commit: string }

function readProvenance(folder: string): Provenance {
  try {
    const { buildDefinition } = JSON.parse(readFileSync(join(folder, 'provenance.json'), 'utf8')).predicate
    return {
      names: buildDefinition.externalParameters.targets,
      without: buildDefinition.externalParameters.without.filter(isReleasePart),
      commit: buildDefinition.resolvedDependencies[0].digest.gitCommit,
    }
  } catch {
    throw new UsageError(`${folder} has no provenance.json of a release.`)
  }
}

/** Runs `work` with a folder for unfinished files next to the finished ones, and removes it. */
async function withWorkFolder(parent: string, work: (folder: string) => Promise<number>): Promise<number> {
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, '.unfinished-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
