/** Runs a program to its end. @returns its standard output @throws Error with its output if it fails */
export async function runToEnd(
  command: string[],
  { cwd, env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  const child = Bun.spawn(command, {
    ...(cwd !== undefined && { cwd }),
    env: { ...process.env, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [output, errors, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (exitCode === 0) return output
  throw new Error(`${command.join(' ')} ended with ${exitCode}: ${output}${errors}`.slice(0, 2000))
}
