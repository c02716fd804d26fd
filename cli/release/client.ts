import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packArchive } from './archive.ts'

/**
 * Packs `otpd/client` in the form of `npm pack`, for `npm install FILE`. Not with npm itself, whose bytes depend on the
 * version of Node.
 *
 * @param folder where to build it
 * @param seconds modification time of every file, in seconds since 1970
 * @throws Error if the build fails
 */
export function packClient(root: string, folder: string, seconds: number): Uint8Array {
  const command = [process.execPath, join(root, 'cli/build-client.ts'), '--outdir', folder]
  const { success } = Bun.spawnSync(command, { cwd: root, stdout: 'ignore', stderr: 'inherit' })
  if (!success) throw new Error('The build of the client failed.')
  const names = [...new Bun.Glob('**/*').scanSync(folder)].toSorted()
  const files = [
    { name: 'package/LICENSE', content: readFileSync(join(root, 'LICENSE')) },
    ...names.map((name) => ({ name: `package/${name}`, content: readFileSync(join(folder, name)) })),
  ]
  return packArchive(files, seconds)
}
