import {
  closeSync,
  copyFileSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { CliError, exitCodes } from '../terminal/errors.ts'
import type { Installation } from './installation.ts'
import { versionOf } from './steps.ts'

/**
 * Writes the new program next to the old one, where it can be tried.
 *
 * @returns its path @throws CliError FILE_NOT_WRITABLE, such as on a full disk; nothing is left
 */
export function writeNewProgram({ path }: Installation, program: Uint8Array): string {
  const folder = dirname(path)
  const newPath = join(folder, `.otpd-${process.pid}.new`)
  try {
    removeLeftovers(folder)
    const file = openSync(newPath, 'wx', 0o755)
    try {
      writeFileSync(file, program)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    return newPath
  } catch (error) {
    rmSync(newPath, { force: true })
    throw notWritten(newPath, error)
  }
}

/** Removes the files of upgrades that were killed before they could. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = /^\.otpd-(\d+)\.(?:new|old)$/.exec(name)?.[1]
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // Others, such as EPERM, are about a process that runs.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}

/**
 * Puts the new program in the place of the old one, which is kept as `otpd-VERSION` as install.sh keeps it. The rename is
 * atomic: a running server keeps its file, and no process sees an incomplete one.
 *
 * @returns path of the old program
 * @throws CliError FILE_NOT_WRITABLE; UPGRADED_MEANWHILE by another upgrade, whose program must not be kept as the old one.
 *   The program in its place is untouched
 */
export function replaceProgram(
  { path, keptFolder }: Installation,
  newPath: string,
  oldVersion: string,
): string {
  const kept = join(keptFolder, `otpd-${oldVersion}`)
  // Each upgrade has a file of its own: several may run at once.
  const copy = join(keptFolder, `.otpd-${process.pid}.old`)
  try {
    mkdirSync(keptFolder, { recursive: true })
    removeLeftovers(keptFolder)
    copyFileSync(path, copy)
    if (versionOf(copy) !== oldVersion) throw upgradedMeanwhile(path)
    renameSync(copy, kept)
    renameSync(newPath, path)
  } catch (error) {
    rmSync(copy, { force: true })
    rmSync(newPath, { force: true })
    throw error instanceof CliError ? error : notWritten(path, error)
  }
  // Only in a folder of otpd's own: next to the program may be backups, such as otpd-2026-11-20T12-00-00-000Z.db.
  if (keptFolder !== dirname(path))
    for (const name of readdirSync(keptFolder))
      if (/^otpd-\d/.test(name) && join(keptFolder, name) !== kept)
        rmSync(join(keptFolder, name), { force: true })
  return kept
}

const upgradedMeanwhile = (path: string) =>
  new CliError(
    exitCodes.refused,
    'UPGRADED_MEANWHILE',
    `${path} was replaced while this upgrade was under way.`,
    { hints: ['This upgrade changed nothing. Look at the result of the other: otpd version'] },
  )

const notWritten = (path: string, error: unknown) =>
  new CliError(
    exitCodes.refused,
    'FILE_NOT_WRITABLE',
    `${path} could not be written: ${error instanceof Error ? error.message : String(error)}`,
    { hints: ['The program was not changed. Make room on the disk, and try again.'], cause: error },
  )
