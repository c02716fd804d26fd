/** Runs git in a folder. @returns its output without the last line break, or null if it fails or is missing */
export function git(folder: string, ...args: string[]): string | null {
  if (Bun.which('git') === null) return null
  const result = Bun.spawnSync(['git', '-C', folder, ...args], { stdout: 'pipe', stderr: 'ignore' })
  return result.success ? result.stdout.toString().trimEnd() : null
}

/** Returns the commit that is checked out, with `-dirty` after it if files differ, or null without a repository. */
export function readCommit(folder: string): string | null {
  const commit = git(folder, 'rev-parse', 'HEAD')
  if (commit === null) return null
  return git(folder, 'status', '--porcelain') === '' ? commit : `${commit}-dirty`
}

/** Returns the time of the commit that is checked out, in UTC, like `2026-11-22T10:00:00Z`, or null without a repository. */
export function readCommitTime(folder: string): string | null {
  const seconds = git(folder, 'show', '--no-patch', '--format=%ct', 'HEAD')
  return seconds === null ? null : `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}Z`
}
