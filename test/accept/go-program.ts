import { join } from 'node:path'
import { run } from './tools.ts'

/** Waits until an address answers. @throws Error after half a minute */
export async function waitForAnswer(url: string): Promise<void> {
  for (let tries = 0; tries < 150; tries++) {
    if (
      await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return
    await Bun.sleep(200)
  }
  throw new Error(`Nothing answers at ${url}.`)
}

/** Posts JSON, and reads the JSON of the response. */
export async function post(url: string, body: object) {
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const json = (await response.json()) as Record<string, unknown>
  return { status: response.status, json }
}

/** Starts a program in a folder, with its output in the files `stdout` and `stderr`. @returns what stops it */
export function start(folder: string, command: string[], env: Record<string, string>) {
  const [stdout, stderr] = [Bun.file(join(folder, 'stdout')), Bun.file(join(folder, 'stderr'))]
  const child = Bun.spawn(command, { cwd: folder, env, stdin: 'ignore', stdout, stderr })
  return async () => {
    child.kill()
    await child.exited
  }
}

/** Builds a program from its source in a folder of ours, which can take ten minutes. */
export async function buildGo(source: string, output: string, flags: string[] = []): Promise<string> {
  await run(source, ['go', 'build', '-mod=mod', ...flags, '-o', output, '.'])
  return output
}
