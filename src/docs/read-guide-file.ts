import { loadGuideFiles } from './guide-files.ts'

/** Reads the text of a file of the guides. @returns undefined if there is none of this name */
export async function readGuideFile(name: string): Promise<string | undefined> {
  const zipped = await (await loadGuideFiles())[name]?.bytes()
  return zipped && new TextDecoder().decode(Bun.gunzipSync(zipped))
}
