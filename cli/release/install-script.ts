import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const keyLine = "release_key=''"
const versionLine = "release_version=''"

/**
 * Returns install.sh of a release: with its version, and the public key of the releases from `.packaging/release.pub`, which is
 * empty without one.
 */
export function installScript(root: string, version: string): string {
  const script = readFileSync(join(root, 'install.sh'), 'utf8')
  const key = readReleaseKey(root)
  for (const line of [keyLine, versionLine])
    if (!script.includes(`\n${line}\n`)) throw new Error(`install.sh has no line ${line}.`)
  return script.replace(keyLine, `release_key='${key}'`).replace(versionLine, `release_version='${version}'`)
}

/** Reads the public key of the releases; empty without one. @throws Error if the file has anything else */
export function readReleaseKey(root: string): string {
  const key = readFileSync(join(root, '.packaging/release.pub'), 'utf8').trim()
  if (/^(ssh-ed25519 [\w+/=]+( [\w@.-]+)?)?$/.test(key)) return key
  throw new Error('.packaging/release.pub must contain one ssh-ed25519 key.')
}
