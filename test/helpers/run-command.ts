import { join } from 'node:path'
import { runCommandLine } from '../../cli/program.ts'
import type { Io } from '../../cli/terminal/io.ts'
import { openBrowser, processIo } from '../../cli/terminal/terminal.ts'

export type RunResult = { exitCode: number; stdout: string; stderr: string }

export type RunOptions = {
  env?: Record<string, string>
  /** Text piped into standard input, which is empty by default and never a terminal. */
  input?: string
  cwd?: string
}

/**
 * Environment of a program under test. It inherits only PATH from this process. The default data directory is below the
 * home also for root, whose default is otherwise a directory of the machine.
 */
export const testEnvironment = (home: string, env: Record<string, string> = {}) => ({
  PATH: process.env.PATH ?? '',
  HOME: home,
  STATE_DIRECTORY: join(home, '.local/share/otpd'),
  ...env,
})

/** Runs a command in this process, with pipes as its streams: a tenth of what `runBinary` takes. */
export function runCommand(
  home: string,
  args: string[],
  { env: given, input = '', cwd = home }: RunOptions = {},
): Promise<RunResult> {
  const env = testEnvironment(home, given)
  return captureCommand(args, {
    ...processIo(),
    env,
    workingDirectory: cwd,
    homeDirectory: home,
    stdinIsTerminal: false,
    stdoutIsTerminal: false,
    stderrIsTerminal: false,
    columns: () => null,
    readInput: async () => input,
    openPage: (url) => openBrowser(url, env),
  })
}

/** Runs a command in this process. @returns its exit code, and what it wrote */
export async function captureCommand(
  args: string[],
  io: Omit<Io, 'writeOut' | 'writeError'>,
): Promise<RunResult> {
  const output = { stdout: '', stderr: '' }
  const exitCode = await runCommandLine(args, {
    ...io,
    writeOut: (text) => void (output.stdout += text),
    writeError: (text) => void (output.stderr += text),
  })
  return { exitCode, ...output }
}
