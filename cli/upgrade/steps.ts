import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { isRecord, parseJson } from '../../src/shared/json.ts'
import { CliError, exitCodes } from '../terminal/errors.ts'

/** Where the settings and data of the server are, as flags of its commands. */
export type ServerPlace = {
  flags: readonly string[]
  /** Null with PostgreSQL. */
  dataDir: string | null
}

type Run = { exitCode: number; stdout: string; stderr: string }

/**
 * Runs a command of otpd with --json. As root it runs as the owner of the data directory, so that it leaves no file there that
 * the server could not use.
 */
function runOtpd(program: string, args: readonly string[], { flags, dataDir }: ServerPlace): Run {
  const owner = dataDir !== null && process.getuid?.() === 0 ? statSync(dataDir) : undefined
  const { status, stdout, stderr } = spawnSync(program, [...args, '--json', ...flags], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
    ...(owner && { uid: owner.uid, gid: owner.gid }),
  })
  return { exitCode: status ?? exitCodes.bug, stdout: stdout ?? '', stderr: stderr ?? '' }
}

/** Reads the version that a program says it is; undefined if it does not run here. */
export function versionOf(program: string): string | undefined {
  const { stdout } = spawnSync(program, ['version'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return /^otpd (\S+)/.exec(stdout ?? '')?.[1]
}

/**
 * Asks the new program whether it can use the settings and the database, without changing either.
 *
 * @returns names of the migrations that its first start runs
 * @throws CliError UPGRADE_REFUSED with what it says
 */
export function checkData(newProgram: string, place: ServerPlace): string[] {
  const run = runOtpd(newProgram, ['migrate', 'status'], place)
  if (run.exitCode === exitCodes.notFound) return []
  const json = parseJson(run.stdout)
  const data = isRecord(json) && isRecord(json.data) ? json.data : undefined
  if (run.exitCode !== 0 || !data) throw stopped('The new version cannot use the settings or the data', run)
  return Array.isArray(data.pending) ? data.pending.map(String) : []
}

/** Makes a backup with the program that is installed. @returns its file @throws CliError UPGRADE_REFUSED */
export function backUp(program: string, place: ServerPlace): string {
  const run = runOtpd(program, ['backup'], place)
  const json = parseJson(run.stdout)
  const data = isRecord(json) && isRecord(json.data) ? json.data : undefined
  if (run.exitCode !== 0 || typeof data?.file !== 'string')
    throw stopped('The backup before the upgrade failed', run, ['To upgrade without one: --no-backup'])
  return data.file
}

function stopped(what: string, { stdout, stderr }: Run, hints: string[] = []) {
  const said = readError(stderr) ?? readError(stdout) ?? { message: stderr.trim().slice(-500), hints: [] }
  return new CliError(exitCodes.refused, 'UPGRADE_REFUSED', `${what}: ${said.message}`, {
    hints: [...said.hints, ...hints, 'Nothing was changed.'],
  })
}

/** Reads the error that a command prints with --json, in the last line. */
function readError(text: string): { message: string; hints: string[] } | undefined {
  const json = parseJson(text.trim().split('\n').at(-1) ?? '')
  const error = isRecord(json) && isRecord(json.error) ? json.error : undefined
  if (typeof error?.message !== 'string') return undefined
  return { message: error.message, hints: typeof error.hint === 'string' ? error.hint.split('\n') : [] }
}
