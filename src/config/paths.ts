import { isAbsolute, join } from 'node:path'
import { parseConfigFile, type FileEntry, type ParsedFile } from './toml-file.ts'
import type { ConfigInput, EnvironmentVariables, ResolvedSetting, Reader } from './reader.ts'
import { parsePath } from './values.ts'

type ConfigFile = { path: string | null; entries: readonly FileEntry[] }

/** Far above any real configuration; guards against a wrong path, such as a database. */
const fileBytesMax = 256 * 1024

/** Reads the configuration file. A file named explicitly must exist; otherwise the first existing default is used. */
export function readConfigFile(reader: Reader, input: ConfigInput): ConfigFile {
  const configSetting = reader.read<string | null>('config', parsePath, null)
  if (configSetting.source !== null && configSetting.value === null) return { path: null, entries: [] }
  const defaultPaths = [
    '/etc/otpd/otpd.toml',
    ...xdgPath(input.env, 'XDG_CONFIG_HOME', '.config', 'server.toml'),
  ]
  for (const path of configSetting.value === null ? defaultPaths : [configSetting.value]) {
    const content = tryReadFile(input, path)
    if ('missing' in content && configSetting.value === null) continue
    if ('bytes' in content) return { path, entries: parseEntries(reader, path, content.bytes) }
    const remedy = 'Correct the path or the permissions of the file, or choose another with --config.'
    reader.report(configSetting.source ?? path, content.fault, remedy)
    return { path, entries: [] }
  }
  return { path: null, entries: [] }
}

function parseEntries(reader: Reader, path: string, bytes: Uint8Array): readonly FileEntry[] {
  const parsed: ParsedFile =
    bytes.length > fileBytesMax ? { fault: 'The file is over 256 KiB.', line: 1 } : parseConfigFile(bytes)
  if ('fault' in parsed) {
    const position = parsed.column === undefined ? parsed.line : `${parsed.line}:${parsed.column}`
    reader.report(
      `${path}:${position}`,
      parsed.fault,
      'Write one setting per line, with strings in quotes: key = "value".',
    )
    return []
  }
  reader.useFile(path, parsed.entries)
  return parsed.entries
}

/**
 * Reads the data directory; null in development mode, which keeps nothing, and with a PostgreSQL database.
 *
 * @param databaseSource what names the PostgreSQL database; null without one
 */
export function readDataDir(
  reader: Reader,
  input: ConfigInput,
  dev: ResolvedSetting<boolean>,
  databaseSource: string | null,
): string | null {
  if (databaseSource !== null) {
    const { source } = reader.read<string | null>('dataDir', parsePath, null, {
      defaultOrigin: databaseSource,
    })
    for (const other of [source, dev.value ? dev.source : null]) {
      if (other !== null)
        reader.report(
          other,
          `${databaseSource} names a database too.`,
          'Name one of them: the database is in PostgreSQL, or in a directory.',
        )
    }
    return null
  }
  if (dev.value) {
    if (input.flags.dataDir !== undefined) {
      const remedy = `Remove --data-dir or ${dev.source ?? '--dev'}.`
      reader.report('--data-dir', 'Development mode keeps its data in a temporary folder.', remedy)
    }
    reader.values.push({ setting: 'server.dataDir', value: '(temporary)', origin: dev.source ?? 'default' })
    return null
  }
  const defaultDir = defaultDataDir(input)
  const dataDir = reader.read<string | null>('dataDir', parsePath, defaultDir.path, {
    defaultOrigin: defaultDir.origin,
  })
  if (dataDir.source === null && dataDir.value === null) {
    reader.report(
      'HOME',
      'HOME is not set, so there is no default data directory.',
      'Set --data-dir or OTPD_DATA_DIR.',
    )
  }
  return dataDir.value
}

function defaultDataDir({ env, isRoot }: ConfigInput): { path: string | null; origin: string } {
  // systemd separates multiple state directories with colons; the first one of the unit belongs to otpd.
  const state = env['STATE_DIRECTORY']?.split(':')[0]
  if (state !== undefined && isAbsolute(state)) return { path: state, origin: 'STATE_DIRECTORY' }
  if (isRoot) return { path: '/var/lib/otpd', origin: 'default' }
  return { path: xdgPath(env, 'XDG_DATA_HOME', '.local/share')[0] ?? null, origin: 'default' }
}

/**
 * Resolves `$XDG_…_HOME/otpd/…`, which defaults to a folder below the home folder. Relative values are ignored (XDG Base
 * Directory specification).
 */
function xdgPath(
  env: EnvironmentVariables,
  variable: string,
  underHome: string,
  ...rest: string[]
): string[] {
  const base = env[variable]
  if (base !== undefined && isAbsolute(base)) return [join(base, 'otpd', ...rest)]
  const home = env['HOME']
  return home !== undefined && isAbsolute(home) ? [join(home, underHome, 'otpd', ...rest)] : []
}

/** Reads a file, or says in a sentence why it cannot be read. */
export function tryReadFile(
  input: ConfigInput,
  path: string,
): { bytes: Uint8Array } | { fault: string } | { fault: string; missing: true } {
  try {
    return { bytes: input.readFile(path) }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return { fault: `There is no file ${path}.`, missing: true }
    if (code === 'EACCES' || code === 'EPERM') return { fault: `No permission to read ${path}.` }
    if (code === 'EISDIR') return { fault: `${path} is a folder, not a file.` }
    if (code === 'ENOTREG') return { fault: `${path} is a pipe or a device, not a file.` }
    if (code === 'EFBIG') return { fault: `${path} is over 1 MiB.` }
    return { fault: `${path} could not be read.` }
  }
}
