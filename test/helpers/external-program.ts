import { collectOutput } from './binary.ts'

export type ExternalProgram = Awaited<ReturnType<typeof startExternalProgram>>

/** The programs of Debian's daemons are not on everybody's path. */
export const findProgram = (name: string) =>
  Bun.which(name, { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/local/sbin` })

// Whatever ends the tests, and be it SIGKILL, ends what they started.
const setpriv = findProgram('setpriv')
const killWithParent = setpriv === null ? [] : [setpriv, '--pdeathsig', 'KILL', '--']

/**
 * Starts a program that is not ours and waits until it prints that text, on either of its outputs.
 *
 * @throws with all that it printed, where it ends instead
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
    /** What it has printed to standard output. */
    output: output.text,
    /** Resolves once it has printed that there. */
    waitForOutput: output.waitFor,
    async stop() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/** What is found as soon as it is there. Waits for a minute at most: nobody tells when a file or a log has grown. */
export async function waitFor<T>(description: string, find: () => T | undefined): Promise<T> {
  const deadline = performance.now() + 60_000
  while (performance.now() < deadline) {
    const found = find()
    if (found !== undefined) return found
    await Bun.sleep(20)
  }
  throw new Error(`There was no ${description}.`)
}
