import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ArchiveFile } from './archive.ts'
import { renderSkill } from './skill.ts'

const shells = { bash: 'otpd.bash', zsh: '_otpd', fish: 'otpd.fish' }

/**
 * Collects the files that every archive has next to the executable: texts, manual page, completions, the systemd
 * unit, and the skill for coding agents.
 *
 * @param date day that the manual page names
 */
export function commonFiles(root: string, licences: string, date: string): ArchiveFile[] {
  const read = (path: string) => readFileSync(join(root, path))
  const guide = new TextDecoder().decode(runOtpd(root, date, 'docs', 'agents', '--format', 'md'))
  return [
    { name: 'LICENSE', content: read('LICENSE') },
    { name: 'README.md', content: read('README.md') },
    { name: 'THIRD-PARTY-LICENSES', content: Buffer.from(licences) },
    ...Object.entries(shells).map(([shell, name]) => ({
      name: `completions/${name}`,
      content: runOtpd(root, date, 'completion', shell),
    })),
    { name: 'otpd.1', content: runOtpd(root, date, 'man') },
    { name: 'otpd.service', content: read('.packaging/linux/otpd.service') },
    { name: 'skills/otpd/SKILL.md', content: Buffer.from(renderSkill(guide)) },
  ]
}

/** Runs otpd from source: the executable of another machine does not run here. */
function runOtpd(root: string, date: string, ...args: string[]): Uint8Array {
  const command = [process.execPath, join(root, 'cli/main.ts'), ...args]
  const env = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '/', OTPD_BUILD_DATE: date }
  const { success, stdout, stderr } = Bun.spawnSync(command, {
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  if (!success) throw new Error(`otpd ${args.join(' ')} failed: ${stderr.toString()}`)
  return stdout
}
