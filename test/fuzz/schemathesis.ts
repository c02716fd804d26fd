import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Version of Schemathesis, a Python package that fuzzes an API by its OpenAPI document: https://schemathesis.readthedocs.io */
const version = '4.32.5'

const findPython = () => Bun.which('python3')

/** Returns the reason if Schemathesis cannot run on this machine. */
export function schemathesisSkipReason(): string | undefined {
  const path = findPython()
  if (path === null) return 'python3 is missing'
  const imports = 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))'
  if (Bun.spawnSync([path, '-c', imports]).exitCode === 0) return undefined
  return 'python3 is older than 3.10 or has no venv'
}

/**
 * Installs Schemathesis into its own Python environment below `$XDG_CACHE_HOME` unless it is already installed.
 *
 * @returns path of the program
 */
export async function installSchemathesis(): Promise<string> {
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  const folder = join(cache, 'otpd', `schemathesis-${version}`)
  const program = join(folder, 'bin', 'schemathesis')
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  try {
    await runCommand([findPython() ?? 'python3', '-m', 'venv', '--clear', folder])
    const pip = [join(folder, 'bin', 'python'), '-m', 'pip', '--quiet', '--disable-pip-version-check']
    await runCommand([...pip, 'install', `schemathesis==${version}`])
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  return program
}

async function runCommand(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const [exitCode, errors] = await Promise.all([child.exited, child.stderr.text()])
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${errors.trim()}`)
}
