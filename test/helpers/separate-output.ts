import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath, runBinary } from './binary.ts'
import { testEnvironment, type RunResult } from './run-command.ts'
import { runInTerminal } from './terminal.ts'

type SeparateOutputOptions = {
  env: Record<string, string>
  input: string | undefined
  /** Sends Ctrl-C when it resolves. */
  interruptAfter: Promise<void> | undefined
  /** Makes standard output a terminal of 80 columns, and standard input too unless text is piped in. */
  isTerminal: boolean
}

/** Runs the binary until it exits, with standard output and standard error separate even on a terminal. */
export async function runWithSeparateOutput(
  home: string,
  args: string[],
  options: SeparateOutputOptions,
): Promise<RunResult> {
  const { env, input, interruptAfter, isTerminal } = options
  if (isTerminal) return await runOnTerminal(home, args, options)
  if (interruptAfter === undefined)
    return await runBinary(home, args, { env, ...(input !== undefined && { input }) })
  const child = Bun.spawn([binaryPath, ...args], {
    env: testEnvironment(home, env),
    cwd: home,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const outputs = Promise.all([child.stdout.text(), child.stderr.text()])
  await interruptAfter
  child.kill('SIGINT')
  const [stdout, stderr] = await outputs
  return { exitCode: await child.exited, stdout, stderr }
}

async function runOnTerminal(
  home: string,
  args: string[],
  { env, input, interruptAfter }: SeparateOutputOptions,
): Promise<RunResult> {
  const errors = join(home, 'stderr')
  if (input !== undefined) writeFileSync(join(home, 'stdin'), input)
  const shell = `exec "$0" "$@" 2>stderr ${input === undefined ? '' : '<stdin'}`
  const terminalRun = runInTerminal(home, args, { env, shell })
  if (interruptAfter !== undefined) {
    await interruptAfter
    terminalRun.kill('SIGINT')
  }
  const exitCode = await terminalRun.waitForExit()
  return { exitCode, stdout: terminalRun.text(), stderr: readFileSync(errors, 'utf8') }
}
