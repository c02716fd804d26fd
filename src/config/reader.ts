import { dirname } from 'node:path'
import { isTable, type FileEntry } from './toml-file.ts'
import { removedSettings } from './guard-settings.ts'
import type { Setting } from './setting.ts'
import { fileKeys, settingList, settings, type SettingId } from './settings.ts'
import { isNear, suggest } from '../shared/suggestion.ts'
import type { Parsed } from './values.ts'
import { FREE_PLAN } from '../domain/model/plans.ts'
import { keysOf } from '../shared/fields.ts'

/** A problem that keeps the server from starting: its source, what is wrong and what to do. */
export type Problem = { source: string; message: string; remedy: string }

type ShownValue = string | number | boolean | readonly string[] | null

/** A resolved setting for `otpd config show`. Secrets appear only as `(set)` or `(not set)`. */
export type SettingValue = { setting: string; value: ShownValue; origin: string }

/** Command line flags as commander parses them: `--no-migrate` is `migrate: false`. */
export type Flags = {
  config?: string | undefined
  listen?: string | undefined
  dataDir?: string | undefined
  publicUrl?: string | undefined
  compat?: string | undefined
  domain?: string[] | undefined
  tlsCert?: string | undefined
  tlsKey?: string | undefined
  dev?: boolean | undefined
  migrate?: boolean | undefined
  logFormat?: string | undefined
  logLevel?: string | undefined
}

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>

/** Everything the configuration depends on, so that tests need no separate process. */
export type ConfigInput = {
  flags: Flags
  env: EnvironmentVariables
  /** @throws the errors of `readRegularFile` */
  readFile(path: string): Uint8Array
  /** Type and permissions of a file, as `stat` returns them. @throws the errors of `statSync` */
  readMode(path: string): number
  /** Base of relative paths in flags and variables; paths in the file are relative to the file. */
  cwd: string
  isRoot: boolean
  /** Default name of this node. */
  hostName: string
  /** Milliseconds since the epoch. */
  now(): number
}

type FoundSetting = { text: string; source: string; base: string }

/** A value with the flag, variable or file line that set it, if only to nothing; `source` is null for a default. */
export type ResolvedSetting<T> = { value: T; source: string | null; isEmpty?: boolean }

type ReadOptions<T> = {
  /** Formats a value that is not a plain one for `otpd config show`. */
  show?: (value: T) => ShownValue
  /** Origin of the default, if it is not built in. */
  defaultOrigin?: string
}

export type Reader = ReturnType<typeof createReader>

/**
 * Looks up settings by precedence (flag, variable, file, default) and collects every problem and origin on the way. An
 * invalid value is reported and replaced by the default, so that one problem does not hide the next.
 */
export function createReader(input: Pick<ConfigInput, 'flags' | 'env' | 'cwd'>) {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const values: SettingValue[] = []
  let entries: readonly FileEntry[] = []
  let filePath = ''

  const formatSource = (entry: FileEntry) => `${filePath}:${entry.line}`

  function report(source: string, message: string, remedy: string) {
    problems.push({ source, message, remedy })
  }

  function warn(source: string, message: string, remedy: string) {
    warnings.push({ source, message, remedy })
  }

  function read<T>(
    id: SettingId,
    parse: (text: string, base: string) => Parsed<T>,
    fallback: T,
    options: ReadOptions<T> = {},
  ): ResolvedSetting<T> {
    const setting: Setting = settings[id]
    const show = (value: T) => (setting.secret ? '(set)' : (options.show ?? showPlain)(value))
    const recordValue = (value: ShownValue, origin: string) =>
      values.push({ setting: setting.name, value, origin })
    const found = findSetting(id, setting)
    if (found === undefined) {
      recordValue(setting.secret ? '(not set)' : show(fallback), options.defaultOrigin ?? 'default')
      return { value: fallback, source: null }
    }
    const parsed = 'fault' in found ? found : parseText(setting, found, parse)
    if ('fault' in parsed) {
      report(found.source, parsed.fault, parsed.remedy)
      recordValue('(not valid)', found.source)
      return { value: fallback, source: found.source, isEmpty: 'text' in found && found.text.trim() === '' }
    }
    recordValue(show(parsed.value), found.source)
    return { value: parsed.value, source: found.source }
  }

  /** Finds the source with the highest precedence that sets the value. */
  function findSetting(
    id: SettingId,
    setting: Setting,
  ): FoundSetting | (Fault & { source: string }) | undefined {
    const flag = flagText(input.flags, id)
    if (flag !== undefined) return { text: flag, source: setting.flag ?? id, base: input.cwd }
    const variable = input.env[setting.variable]
    if (variable !== undefined) return { text: variable, source: setting.variable, base: input.cwd }
    const entry = setting.notInFile ? undefined : entries.find(({ path }) => path.join('.') === setting.name)
    if (!entry) return undefined
    const source = formatSource(entry)
    const text = entryToText(setting, entry.value)
    return typeof text === 'string' ? { text, source, base: dirname(filePath) } : { ...text, source }
  }

  return {
    problems,
    warnings,
    values,
    formatSource,
    /** Base of relative paths in the file. */
    configFileDir: () => dirname(filePath),
    report,
    warn,
    read,
    /** Sets the entries of the configuration file and reports every unknown key. */
    useFile(path: string, fileEntries: readonly FileEntry[]) {
      filePath = path
      entries = fileEntries
      for (const entry of entries) reportUnknownKey(entry)
    },
    /** Reports misspelt `OTPD_*` variables, which would otherwise be ignored silently. */
    reportUnknownVariables() {
      const knownVariables = [...settingList.map(({ variable }) => variable), ...nonServerVariables]
      for (const name of Object.keys(input.env).toSorted()) {
        if (!name.startsWith('OTPD_') || input.env[name] === undefined || knownVariables.includes(name))
          continue
        if (kubernetesServiceLink.test(name) || name.startsWith(secretPrefix)) continue
        if (reportRemoved('variable', name, name)) continue
        report(name, 'There is no such setting.', suggest(name, knownVariables) ?? 'Remove the variable.')
      }
    },
  }

  /** Reports a setting that an earlier release had, with what to write instead. @returns whether it is one */
  function reportRemoved(kind: 'name' | 'variable', text: string, source: string): boolean {
    const removed = removedSettings.find((setting) => setting[kind] === text)
    if (!removed) return false
    report(source, `${removed.name} was removed.`, removed.remedy)
    return true
  }

  function reportUnknownKey(entry: FileEntry) {
    const key = entry.path.join('.')
    if (reportRemoved('name', key, formatSource(entry))) return
    const isSection = [...fileKeys, 'plans.'].some((name) => name.startsWith(`${key}.`))
    if (fileKeys.includes(key) || namedTables.includes(entry.path[0] ?? '')) return
    if (isSection && isTable(entry.value)) return
    const list = listedKeys.get(key)
    const table = isSection ? `Write [${key}], and its settings below it.` : undefined
    const nonFileSetting = settingList.find(({ name, notInFile }) => notInFile && isNear(key, name))
    const remedy = nonFileSetting
      ? `It cannot be set in the file: use ${nonFileSetting.variable}.`
      : undefined
    report(
      formatSource(entry),
      `There is no setting ${key}.`,
      table ??
        remedy ??
        (list ? `Write it below [[${list}]].` : suggest(key, [...fileKeys, ...planKeys])) ??
        'Remove the line.',
    )
  }
}

/** Keys of `[plans.NAME]`, as a suggestion names them. */
const planKeys = keysOf(FREE_PLAN).map((key) => `plans.NAME.${key}`)

/** Keys that are often written above the tables of the list to which they belong. */
const listedKeys: ReadonlyMap<string, string> = new Map([
  ['strategy', 'routes'],
  ['price', 'providers'],
  ['failoverOnBlock', 'providers'],
  ['feedback', 'providers'],
])

/** Tables whose keys are chosen by the operator; they are checked by the code that reads them. */
const namedTables = ['alerts', 'plans', 'templates', 'providers', 'routes']

/** Prefix of variables for provider secrets, which the file refers to by name. */
export const secretPrefix = 'OTPD_SECRET_'

/** Variables with the same prefix that belong to the command line, the installer and the tests. */
const nonServerVariables: readonly string[] = [
  'OTPD_SERVER',
  'OTPD_TOKEN',
  'OTPD_CONTEXT',
  'OTPD_CONFIG_DIR',
  'OTPD_CLIENT_ID',
  'OTPD_CLIENT_SECRET',
  'OTPD_API_KEY',
  'OTPD_WEBHOOK_SECRET',
  'OTPD_TIMEOUT',
  'OTPD_NO_INPUT',
  'OTPD_DOWNLOAD_URL',
  'OTPD_VERSION',
  'OTPD_TEST_POSTGRES_URL',
  'OTPD_TEST_SMPP_PYTHON',
  'OTPD_TEST_PYTHON',
  'OTPD_DEBUG',
]

/** Kubernetes sets variables named after the services of a namespace; one of those services may be called otpd. */
const kubernetesServiceLink =
  /^OTPD_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT(_[0-9]+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)$/

type Fault = { fault: string; remedy: string }

function parseText<T>(
  setting: Setting,
  found: FoundSetting,
  parse: (text: string, base: string) => Parsed<T>,
): Parsed<T> {
  const text = found.text.trim()
  if (/\p{Cc}/u.test(text)) {
    return {
      fault: 'The value contains a control character.',
      remedy: 'Write it on one line, without tabs or NUL.',
    }
  }
  // An empty list is valid: it overrides the list of the file. Any other empty value is a mistake.
  if (text === '' && setting.kind !== 'list') {
    return { fault: 'The value is empty.', remedy: 'Set a value, or remove the setting to use the default.' }
  }
  return parse(text, found.base)
}

function flagText(flags: Flags, id: SettingId): string | undefined {
  if (id === 'dev') return flags.dev === true ? 'true' : undefined
  if (id === 'noMigrate') return flags.migrate === false ? 'true' : undefined
  const texts: Partial<Record<SettingId, string | undefined>> = {
    config: flags.config,
    listen: flags.listen,
    dataDir: flags.dataDir,
    publicUrl: flags.publicUrl,
    compat: flags.compat,
    tlsDomains: flags.domain?.join(','),
    tlsCertFile: flags.tlsCert,
    tlsKeyFile: flags.tlsKey,
    logFormat: flags.logFormat,
    logLevel: flags.logLevel,
  }
  return texts[id]
}

/** Converts a typed file value to text. A number in quotes or a list in one string is rejected, not guessed at. */
function entryToText({ kind, name }: Setting, value: unknown): string | Fault {
  const wrongType = (expectedType: string, remedy: string): Fault => ({
    fault: `${name} must be ${expectedType}.`,
    remedy,
  })
  if (kind === 'text') return typeof value === 'string' ? value : wrongType('a string', 'Put it in quotes.')
  if (kind === 'switch')
    return typeof value === 'boolean' ? String(value) : wrongType('true or false', 'Write it without quotes.')
  if (kind === 'integer') {
    const isInteger = typeof value === 'number' && Number.isSafeInteger(value)
    return isInteger ? String(value) : wrongType('a whole number', 'Write it without quotes.')
  }
  const isWordList =
    Array.isArray(value) && value.every((word) => typeof word === 'string' && !word.includes(','))
  return isWordList ? value.join(',') : wrongType('an array of strings', 'Write it as ["one", "two"].')
}

function showPlain(value: unknown): ShownValue {
  if (Array.isArray(value)) return value.map(String)
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}
