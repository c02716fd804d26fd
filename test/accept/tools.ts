import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../helpers/binary.ts'
import { login, makeServerHome } from '../helpers/webhook-client.ts'

/** Runs a check in a temporary folder, which is removed afterwards. */
export async function inFolder(check: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-accept-'))
  try {
    await check(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Starts the compiled server with an account and without limits, and saves its OpenAPI document as `openapi.json`. */
export async function startDocumented(folder: string) {
  const server = await startServer(makeServerHome())
  const document = await (await fetch(`${server.url}/v1/openapi.json`)).text()
  writeFileSync(join(folder, 'openapi.json'), document)
  const env = { OTPD_URL: server.url, OTPD_EMAIL: login.username, OTPD_PASSWORD: login.password }
  return { server, env }
}

/** Runs a program in a folder. Prints its output if it fails. @throws Error it exits with another code than 0 */
export async function run(
  folder: string,
  command: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const child = Bun.spawn(command, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (exitCode === 0) return stdout
  process.stdout.write(`${stdout}${stderr}\n`)
  throw new Error(`${command.slice(0, 3).join(' ')} exited with ${exitCode}.`)
}

/** Installs packages of npm with fixed versions into a folder. */
export const installFromNpm = (folder: string, ...packages: string[]) =>
  run(folder, [
    'npm',
    'install',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    '--loglevel=error',
    ...packages,
  ])
