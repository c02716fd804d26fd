import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const keyLine = "release_key=''"

/** Returns install.sh with the public key of the releases, from `.packaging/release.pub`; that file is empty without one. */
export function installScript(root: string): string {
  const script = readFileSync(join(root, 'install.sh'), 'utf8')
  const key = readFileSync(join(root, '.packaging/release.pub'), 'utf8').trim()
  if (!script.includes(`\n${keyLine}\n`)) throw new Error(`install.sh has no line ${keyLine}.`)
  if (!/^(ssh-ed25519 [\w+/=]+( [\w@.-]+)?)?$/.test(key))
    throw new Error('.packaging/release.pub must contain one ssh-ed25519 key.')
  return script.replace(keyLine, `release_key='${key}'`)
}
