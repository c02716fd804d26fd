import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { isRecord, parseJson } from '../shared/json.ts'

/** Writes JSON for its owner only. Readers see the old file or the new one, also after a crash. */
export function writePrivateJson(path: string, content: object): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  writeFileSync(draft, JSON.stringify(content), { mode: 0o600, flag: 'wx', flush: true })
  renameSync(draft, path)
}

/** Reads an object; undefined if there is none that can be read. */
export function readJsonFile(path: string): Record<string, unknown> | undefined {
  try {
    const content = parseJson(readFileSync(path, 'utf8'))
    return isRecord(content) ? content : undefined
  } catch {
    return undefined
  }
}
