import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import { printable } from '../terminal/text.ts'
import { loadServerConfig, requireConfig } from './config.ts'

export type NewProvider = {
  name: string
  kind: string
  /** Keys and values as they go into the file; a path of a secret is absolute. */
  lines: ReadonlyMap<string, string | boolean>
  /** Settings with the secrets, to try the provider. */
  values: Record<string, string>
  /** Secrets that were typed, each for a file of its own. */
  secretFiles: ReadonlyArray<{ path: string; secret: string }>
}

/**
 * Finds the configuration file: the one that is named, or the default one that exists.
 *
 * @param isShown nothing is written, so a file need not exist
 * @throws usage error without any
 */
export async function configFilePath(io: Io, flag: string | undefined, isShown: boolean): Promise<string> {
  const named = flag ?? io.env['OTPD_CONFIG']
  if (named) return resolve(io.workingDirectory, named)
  const { config } = await loadServerConfig(io, {}, 'host command')
  if (config?.configFile) return config.configFile
  if (isShown) return resolve(io.workingDirectory, 'otpd.toml')
  throw usageError(
    'No configuration file is named.',
    'Pass --config otpd.toml; it is created if it does not exist.',
  )
}

/** Lists the providers of a file; empty if it does not exist. @throws CliError CONFIG_INVALID */
export async function listProviderNames(io: Io, file: string): Promise<string[]> {
  if (!existsSync(file)) return []
  const { delivery } = requireConfig(
    await loadServerConfig(io, { config: file }, 'host command'),
    exitCodes.usage,
  )
  return delivery.providers.map(({ name }) => name)
}

/** Builds the `[[providers]]` table. Values are basic strings of TOML, whose escapes JSON shares. */
export const providerTable = ({ name, kind, lines }: NewProvider): string =>
  [
    '[[providers]]',
    `name = ${JSON.stringify(name)}`,
    `kind = ${JSON.stringify(kind)}`,
    ...[...lines].map(([key, value]) => `${key} = ${JSON.stringify(value)}`),
    '',
  ].join('\n')

/**
 * Writes the secrets to files of mode 0600 and appends the table. The file is replaced at once, and only by a valid one: a
 * crash or a fault leaves the old file.
 *
 * @throws CliError nothing was written
 */
export async function appendProvider(
  io: Io,
  file: string,
  { secretFiles }: NewProvider,
  table: string,
): Promise<void> {
  const temporary = `${file}.new`
  const written: string[] = []
  try {
    mkdirSync(dirname(file), { recursive: true })
    for (const { path, secret } of secretFiles) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      writeFileSync(path, `${secret}\n`, { mode: 0o600, flag: 'wx' })
      written.push(path)
    }
    const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
    const separator = before === '' ? '' : before.endsWith('\n') ? '\n' : '\n\n'
    writeFileSync(temporary, before + separator + table, { mode: 0o600 })
    if (before !== '') chmodSync(temporary, statSync(file).mode & 0o777)
    requireConfig(await loadServerConfig(io, { config: temporary }, 'host command'), exitCodes.negative)
    renameSync(temporary, file)
  } catch (error) {
    for (const path of written) rmSync(path, { force: true })
    rmSync(temporary, { force: true })
    if (error instanceof CliError) throw error
    throw writeError(io, error)
  }
}

function writeError(io: Io, error: unknown): CliError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'ERROR'
  const path = error instanceof Error && 'path' in error ? String(error.path) : ''
  const place = path === '' ? '' : ` ${printable(relative(io.workingDirectory, path) || path)}`
  const remedy =
    code === 'EEXIST'
      ? 'Choose another --name, or remove that file.'
      : 'Run it as the user who owns the file.'
  return new CliError(exitCodes.negative, 'CONFIG_NOT_WRITTEN', `${code}:${place}. Nothing was written.`, {
    hints: [remedy],
  })
}
