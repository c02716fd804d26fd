import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from './options.ts'
import { sign, signatureNamespaces } from './signature.ts'

/**
 * Requires that installers take what the key signs, before the build.
 *
 * @param publicKey content of `.packaging/release.pub`
 * @throws UsageError if the key is another; Error if it cannot sign
 */
export function requireKeyPair(key: string, publicKey: string) {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-release-key-'))
  const content = Buffer.from('test')
  try {
    writeFileSync(join(folder, 'latest'), content)
    sign(folder, 'latest', key)
    writeFileSync(join(folder, 'signers'), `otpd ${publicKey}\n`)
    const signed = ['-f', 'signers', '-I', 'otpd', '-n', signatureNamespaces.latest, '-s', 'latest.sig']
    const command = ['ssh-keygen', '-Y', 'verify', '-q', ...signed]
    if (!Bun.spawnSync(command, { cwd: folder, stdin: content, stdout: 'ignore', stderr: 'ignore' }).success)
      throw new UsageError(
        `${key}, which OTPD_RELEASE_KEY names, is not the key in .packaging/release.pub: no installer would take the release.`,
      )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
