import { dirname } from 'node:path'
import { isTable, type FileEntry } from './toml-file.ts'
import { settingList, settings, type Setting, type SettingId } from './settings.ts'
import { isNear, suggest } from './suggestion.ts'
import type { Parsed } from './values.ts'

/** One thing that keeps the server from starting: where it was said, what is wrong, what to do. */
export type Problem = { source: string; message: string; remedy: string }

export type ShownValue = string | number | boolean | readonly string[] | null

/** A setting as it came out, for `otpd config show`. A secret is only ever `(set)` or `(not set)`. */
export type SettingValue = { setting: string; value: ShownValue; origin: string }

/** What stood on the command line, as commander hands it over: `--no-migrate` is `migrate: false`. */
export type Flags = {
  config?: string | undefined
  listen?: string | undefined
  dataDir?: string | undefined
  publicUrl?: string | undefined
  dev?: boolean | undefined
  migrate?: boolean | undefined
  logFormat?: string | undefined
  logLevel?: string | undefined
}

export type Environment = Readonly<Record<string, string | undefined>>

/** All that the configuration depends on, so that tests need no process of their own. */
export type ConfigInput = {
  flags: Flags
  env: Environment
  /** Throws as `readFileSync` does. */
  readFile(path: string): Uint8Array
  /** Where relative paths of flags and variables begin; those of the file begin at the file. */
  cwd: string
  isRoot: boolean
}

type FoundSetting = { text: string; source: string; base: string }

/** A value with the flag, variable or line that gave it; `source` is null for a default. */
export type ResolvedSetting<T> = { value: T; source: string | null }

export type ReadOptions<T> = {
  /** How the value looks in the table where it is not a plain one. */
  show?: (value: T) => ShownValue
  /** Where the default came from, if not from the program itself. */
  defaultOrigin?: string
}

export type Reader = ReturnType<typeof createReader>

/**
 * Looks settings up by precedence (flag, variable, file, default), and gathers every problem and every origin on
 * the way. A faulty value is reported and counts as the default, so that one fault does not hide the next.
 */
export function createReader(input: Pick<ConfigInput, 'flags' | 'env' | 'cwd'>) {
  const problems: Problem[] = []
  const values: SettingValue[] = []
  let entries: readonly FileEntry[] = []
  let filePath = ''

  const formatSource = (entry: FileEntry) => `${filePath}:${entry.line}`

  function report(source: string, message: string, remedy: string) {
    problems.push({ source, message, remedy })
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
      return { value: fallback, source: found.source }
    }
    recordValue(show(parsed.value), found.source)
    return { value: parsed.value, source: found.source }
  }

  /** The first place that gives the setting, in order of precedence. */
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
    values,
    formatSource,
    /** Where relative paths of the file begin. */
    configFileDir: () => dirname(filePath),
    report,
    read,
    /** Takes the values of the configuration file and reports every key that is no setting. */
    useFile(path: string, fileEntries: readonly FileEntry[]) {
      filePath = path
      entries = fileEntries
      for (const entry of entries) reportUnknownKey(entry)
    },
    reportUnknownVariables() {
      const knownVariables = [...settingList.map(({ variable }) => variable), ...nonServerVariables]
      for (const name of Object.keys(input.env).toSorted()) {
        if (!name.startsWith('OTPD_') || input.env[name] === undefined || knownVariables.includes(name))
          continue
        if (kubernetesServiceLink.test(name) || name.startsWith(secretPrefix)) continue
        report(name, 'There is no such setting.', suggest(name, knownVariables) ?? 'Remove the variable.')
      }
    },
  }

  function reportUnknownKey(entry: FileEntry) {
    const key = entry.path.join('.')
    const fileKeys = settingList.filter(({ notInFile }) => !notInFile).map(({ name }) => name)
    const isSection = [...fileKeys, 'plans.'].some((name) => name.startsWith(`${key}.`))
    if (fileKeys.includes(key) || namedTables.includes(entry.path[0] ?? '')) return
    if (isSection && isTable(entry.value)) return
    const nonFileSetting = settingList.find(({ name, notInFile }) => notInFile && isNear(key, name))
    const remedy = nonFileSetting
      ? `It does not stand in the file: give it as ${nonFileSetting.variable}.`
      : undefined
    report(
      formatSource(entry),
      `There is no setting ${key}.`,
      remedy ?? suggest(key, fileKeys) ?? 'Remove the line.',
    )
  }
}

/** Tables whose keys are names; they are checked where they are read. */
const namedTables = ['plans', 'templates', 'providers', 'routes']

/** Variables that the file names itself, for the secrets of providers. */
export const secretPrefix = 'OTPD_SECRET_'

/** Variables of the same prefix that the command line, the installer and the tests use; not the server's. */
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

/** Kubernetes gives every pod variables named after the services of its namespace, and ours may be called otpd. */
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
      fault: 'The value holds a control character.',
      remedy: 'Write it on one line, without NUL or tabs.',
    }
  }
  // An empty list is a value: it takes back what the file says. Anything else that is empty is a slip.
  if (text === '' && setting.kind !== 'list') {
    return { fault: 'The value is empty.', remedy: 'Give a value, or remove it for the default.' }
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
    logFormat: flags.logFormat,
    logLevel: flags.logLevel,
  }
  return texts[id]
}

/** The file is typed: a number in quotes or a list in one string is a slip that is better said than guessed at. */
function entryToText({ kind }: Setting, value: unknown): string | Fault {
  if (kind === 'text') return typeof value === 'string' ? value : wrongType('a text', 'Put it in quotes.')
  if (kind === 'switch')
    return typeof value === 'boolean' ? String(value) : wrongType('true or false', 'Write it bare.')
  if (kind === 'integer') {
    const isInteger = typeof value === 'number' && Number.isSafeInteger(value)
    return isInteger ? String(value) : wrongType('a whole number', 'Write it bare, without quotes.')
  }
  const isWordList =
    Array.isArray(value) && value.every((word) => typeof word === 'string' && !word.includes(','))
  return isWordList ? value.join(',') : wrongType('an array of strings', 'Write it as ["one", "two"].')
}

const wrongType = (expectedType: string, remedy: string): Fault => ({
  fault: `The value must be ${expectedType}.`,
  remedy,
})

function showPlain(value: unknown): ShownValue {
  if (Array.isArray(value)) return value.map(String)
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}
