import { collectOutput } from './binary.ts'

export type ExternalProgram = Awaited<ReturnType<typeof startExternalProgram>>

/** Finds a program, also in the `sbin` folders, where Debian installs daemons and which PATH may lack. */
export const findProgram = (name: string) =>
  Bun.which(name, { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/local/sbin` })

// The kernel kills the program when the test process dies, even by SIGKILL.
const setpriv = findProgram('setpriv')
const killWithParent = setpriv === null ? [] : [setpriv, '--pdeathsig', 'KILL', '--']

/**
 * Starts a third-party program and waits until it prints the `ready` text on stdout or stderr.
 *
 * @throws Error with its output if it exits first
 */
export async function startExternalProgram(command: string[], ready: string) {
  const child = Bun.spawn([...killWithParent, ...command], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const output = collectOutput(child.stdout)
  const errors = collectOutput(child.stderr)
  const isReady = await Promise.race([
    Promise.race([output.waitFor(ready), errors.waitFor(ready)]).then(() => true),
    child.exited.then(() => false),
  ])
  if (!isReady) throw new Error(`${command[0]} ended (${child.exitCode}): ${output.text()}${errors.text()}`)

  return {
    /** Returns its standard output so far. */
    output: output.text,
    /** Returns its standard error so far. */
    errors: errors.text,
    /** Resolves once it has printed the text to standard output. */
    waitForOutput: output.waitFor,
    async stop() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/**
 * Polls until `find` returns a value, because files and logs of other programs send no notification.
 *
 * @throws Error after a minute
 */
export async function waitFor<T>(description: string, find: () => T | undefined): Promise<T> {
  const deadline = performance.now() + 60_000
  while (performance.now() < deadline) {
    const found = find()
    if (found !== undefined) return found
    await Bun.sleep(20)
  }
  throw new Error(`Timed out: no ${description}.`)
}
