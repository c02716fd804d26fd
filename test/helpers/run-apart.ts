import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath, runBinary, type Ran } from './binary.ts'
import { runInTerminal } from './terminal.ts'

export type ApartOptions = {
  env: Record<string, string>
  input: string | undefined
  /** When Ctrl-C comes. */
  until: Promise<void> | undefined
  /** A terminal of 80 columns is standard output, and standard input where nothing is piped in. */
  isTerminal: boolean
}

/** Runs `dist/otpd` to its end, standard output and standard error told apart on a terminal too. */
export async function runApart(home: string, args: string[], options: ApartOptions): Promise<Ran> {
  const { env, input, until, isTerminal } = options
  if (isTerminal) return await runOnTerminal(home, args, options)
  if (until === undefined) return await runBinary(home, args, { env, ...(input !== undefined && { input }) })
  const child = Bun.spawn([binaryPath, ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: home, ...env },
    cwd: home,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const printed = Promise.all([child.stdout.text(), child.stderr.text()])
  await until
  child.kill('SIGINT')
  const [stdout, stderr] = await printed
  return { exitCode: await child.exited, stdout, stderr }
}

async function runOnTerminal(
  home: string,
  args: string[],
  { env, input, until }: ApartOptions,
): Promise<Ran> {
  const errors = join(home, 'stderr')
  if (input !== undefined) writeFileSync(join(home, 'stdin'), input)
  const shell = `exec "$0" "$@" 2>stderr ${input === undefined ? '' : '<stdin'}`
  const run = runInTerminal(home, args, { env, shell })
  if (until !== undefined) {
    await until
    run.kill('SIGINT')
  }
  const exitCode = await run.ended()
  return { exitCode, stdout: run.text(), stderr: readFileSync(errors, 'utf8') }
}
