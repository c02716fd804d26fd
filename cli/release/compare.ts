import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Lists the files of a release, by its SHA256SUMS, that differ between two folders, or that one of them lacks. */
export function listDifferences(released: string, rebuilt: string): string[] {
  const names = new Set(['SHA256SUMS', ...[released, rebuilt].flatMap(listedNames)])
  return [...names].filter((name) => {
    const [first, second] = [readOrNull(join(released, name)), readOrNull(join(rebuilt, name))]
    return first === null || second === null || !first.equals(second)
  })
}

const listedNames = (folder: string) =>
  (readOrNull(join(folder, 'SHA256SUMS'))?.toString() ?? '')
    .split('\n')
    .flatMap((line) => line.split('  ').slice(1))

function readOrNull(path: string): Buffer | null {
  try {
    return readFileSync(path)
  } catch {
    return null
  }
}
