import { join } from 'node:path'

/** The site: pages, their style and scripts, pictures, and the search index, compressed with gzip, by file name. */
type GuideFiles = Readonly<Record<string, Blob>>

let files: Promise<GuideFiles> | undefined

/**
 * Returns the rendered guides. The executable contains them as files: `cli/build.ts` puts a module that opens those in
 * the place of this one. From source they are rendered at the first call, in a process of its own.
 */
export const loadGuideFiles = (): Promise<GuideFiles> => (files ??= renderInProcess())

async function renderInProcess(): Promise<GuideFiles> {
  const script = join(import.meta.dir, '../../cli/guides/render.ts')
  const child = Bun.spawn([process.execPath, script], { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const rendered: Record<string, string> = JSON.parse(await child.stdout.text())
  return Object.fromEntries(
    Object.entries(rendered).map(([name, text]) => [name, new Blob([Bun.gzipSync(text)])]),
  )
}
