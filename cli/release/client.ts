import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ArchiveFile } from './archive.ts'

/**
 * Builds the package of `otpd/client`.
 *
 * @param folder where to build it
 * @returns its files @throws Error if the build fails
 */
export function buildClient(root: string, folder: string): ArchiveFile[] {
  const command = [process.execPath, join(root, 'cli/build-client.ts'), '--outdir', folder]
  const { success } = Bun.spawnSync(command, { cwd: root, stdout: 'ignore', stderr: 'inherit' })
  if (!success) throw new Error('The build of the client failed.')
  const names = [...new Bun.Glob('**/*').scanSync(folder)].toSorted()
  return names.map((name) => ({ name, content: readFileSync(join(folder, name)) }))
}
