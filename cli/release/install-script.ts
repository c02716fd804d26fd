import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const keyLine = "release_key=''"
const versionLine = "release_version=''"
const urlLine = "release_url=''"

/**
 * Returns install.sh of a release: with its version, the public key of the releases from `.packaging/release.pub`, and their
 * address from `.packaging/release.url`. Both files are empty without one.
 */
export function installScript(root: string, version: string): string {
  const script = readFileSync(join(root, 'install.sh'), 'utf8')
  const key = readReleaseKey(root)
  for (const line of [keyLine, versionLine, urlLine])
    if (!script.includes(`\n${line}\n`)) throw new Error(`install.sh has no line ${line}.`)
  return script
    .replace(keyLine, `release_key='${key}'`)
    .replace(versionLine, `release_version='${version}'`)
    .replace(urlLine, `release_url='${readReleaseUrl(root)}'`)
}

/** Reads the public key of the releases; empty without one. @throws Error if the file has anything else */
export function readReleaseKey(root: string): string {
  const key = readFileSync(join(root, '.packaging/release.pub'), 'utf8').trim()
  if (/^(ssh-ed25519 [\w+/=]+( [\w@.-]+)?)?$/.test(key)) return key
  throw new Error('.packaging/release.pub must contain one ssh-ed25519 key.')
}

/** Reads the address of the folder of releases; empty without one. @throws Error if the file has anything else */
export function readReleaseUrl(root: string): string {
  const url = readFileSync(join(root, '.packaging/release.url'), 'utf8').trim()
  if (/^(https:\/\/[\w.:/-]*[\w-])?$/.test(url)) return url
  throw new Error('.packaging/release.url must contain one https URL, without a slash at its end.')
}
