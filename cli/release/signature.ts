import { join } from 'node:path'

/** Purposes that are part of a signature, so that none made for another purpose is taken. */
export const signatureNamespaces = { SHA256SUMS: 'otpd-release', latest: 'otpd-latest' }

/**
 * Signs a file as `FILE.sig` with ssh-keygen. An Ed25519 key gives the same signature each time.
 *
 * @param key file with the private key, or with the public key if an agent has the private one
 * @throws Error if ssh-keygen is missing or cannot use the key
 */
export function sign(folder: string, file: keyof typeof signatureNamespaces, key: string) {
  if (Bun.which('ssh-keygen') === null) throw new Error('ssh-keygen is missing; it signs the release.')
  const namespace = signatureNamespaces[file]
  const command = ['ssh-keygen', '-Y', 'sign', '-q', '-f', key, '-n', namespace, join(folder, file)]
  const { success, stderr } = Bun.spawnSync(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  if (!success) throw new Error(`ssh-keygen could not sign with ${key}: ${stderr.toString().trim()}`)
}
