import { expect } from 'bun:test'
import { loadConfig, type Config, type ConfigInput } from '../../src/config/config.ts'

/** Contents by path. An `Error` instead of a text is thrown by the read. */
export type LoadOptions = Partial<Omit<ConfigInput, 'readFile' | 'readMode'>> & {
  files?: Record<string, string | Uint8Array | Error>
  /** Permissions by path; private if not named. */
  modes?: Record<string, number>
}

/** Loads a configuration from the arguments alone, with the home directory of a user called Ada. */
export function load(
  { files = {}, modes = {}, ...rest }: LoadOptions = {},
  options: Parameters<typeof loadConfig>[1] = {},
) {
  const readFile = (path: string) => {
    const content = files[path] ?? Object.assign(new Error('none'), { code: 'ENOENT' })
    if (content instanceof Error) throw content
    return typeof content === 'string' ? new TextEncoder().encode(content) : content
  }
  const readMode = (path: string) => {
    readFile(path)
    return modes[path] ?? 0o600
  }
  const defaults = {
    flags: {},
    env: { HOME: '/home/ada' },
    cwd: '/work',
    isRoot: false,
    hostName: 'ada-host',
    now: Date.now,
  }
  return loadConfig({ ...defaults, ...rest, readFile, readMode }, options)
}

export function loadEnv(env: Record<string, string>, files: LoadOptions['files'] = {}) {
  return load({ env: { HOME: '/home/ada', ...env }, files })
}

export function loadFile(text: string | Uint8Array, rest: LoadOptions = {}) {
  return load({
    ...rest,
    flags: { config: '/etc/o.toml', ...rest.flags },
    files: { '/etc/o.toml': text, ...rest.files },
  })
}

export function requireConfig(loaded: ReturnType<typeof loadConfig>): Config {
  expect(loaded.problems).toEqual([])
  if (loaded.config === null) throw new Error('The configuration has problems.')
  return loaded.config
}

export function requireProblem(loaded: ReturnType<typeof loadConfig>) {
  expect(loaded.config).toBeNull()
  expect(loaded.problems.map(({ source }) => source)).toHaveLength(1)
  const problem = loaded.problems[0] ?? { source: '', message: '', remedy: '' }
  return { ...problem, text: `${problem.message} ${problem.remedy}` }
}

export const findOrigin = (loaded: ReturnType<typeof loadConfig>, name: string) =>
  loaded.settings.find(({ setting }) => setting === name)?.origin
