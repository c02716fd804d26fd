import { spawnSync } from 'node:child_process'
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Installation } from './installation.ts'

/** Completions and the manual page, as install.sh writes them below PREFIX/share: the command that prints one, and its file. */
export const extras: readonly { args: readonly string[]; file: string }[] = [
  { args: ['completion', 'bash'], file: 'bash-completion/completions/otpd' },
  { args: ['completion', 'zsh'], file: 'zsh/site-functions/_otpd' },
  { args: ['completion', 'fish'], file: 'fish/vendor_completions.d/otpd.fish' },
  { args: ['man'], file: 'man/man1/otpd.1' },
]

/**
 * Writes completions and the manual page again where install.sh has put them, so that they match the new program. A file that
 * cannot be written stays as it is: the upgrade is done.
 */
export function rewriteExtras({ path }: Installation): void {
  const bin = dirname(path)
  if (basename(bin) !== 'bin') return
  for (const { args, file } of extras) {
    const target = join(dirname(bin), 'share', file)
    if (!existsSync(target)) continue
    const { status, stdout } = spawnSync(path, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    if (status !== 0) continue
    try {
      writeFileSync(`${target}.new`, stdout)
      renameSync(`${target}.new`, target)
    } catch {
      rmSync(`${target}.new`, { force: true })
    }
  }
}
