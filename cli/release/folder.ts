import { copyFileSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from './options.ts'
import { sign } from './signature.ts'

/**
 * Writes what the folder of releases has next to its versions: `versions`, `latest` with its signature, and the installer of
 * the newest release. A pre-release is the newest only if there is nothing else.
 *
 * @param key key that signs `latest`, or null
 * @returns versions that users may get: the newest, and all that are no pre-release
 */
export function updateReleaseFolder(out: string, key: string | null): string[] {
  const versions = readdirSync(out)
    .filter((name) => /^\d+\.\d+\.\d+/.test(name))
    .toSorted((a, b) => Bun.semver.order(b, a))
  const stable = versions.filter((version) => !version.includes('-'))
  const offered = stable.length > 0 ? stable : versions.slice(0, 1)
  const [latest] = offered
  if (latest === undefined) throw new Error(`${out} has no release.`)
  writeFileSync(join(out, 'versions'), versions.map((version) => `${version}\n`).join(''))
  writeFileSync(join(out, 'latest'), `${latest}\n`)
  rmSync(join(out, 'latest.sig'), { force: true })
  if (key !== null) sign(out, 'latest', key)
  copyFileSync(join(out, latest, 'install.sh'), join(out, 'install.sh'))
  return offered
}

/**
 * Finds the release to verify: in its own folder, or in the folder of releases that has it.
 *
 * @throws UsageError if there is none
 */
export function findRelease(folder: string, version: string): string {
  const found = [folder, join(folder, version)].find((path) => existsSync(join(path, 'provenance.json')))
  if (found === undefined)
    throw new UsageError(`${folder} has no provenance.json of a release, and no release ${version}.`)
  return found
}
