import { resolve } from 'node:path'
import { findSettingFaults, type ProviderKind } from '../delivery/kit/provider-kinds.ts'
import { suggest } from '../shared/suggestion.ts'
import { isForServer, type ConfigUse } from './database.ts'
import { tryReadFile } from './paths.ts'
import { secretPrefix, type ConfigInput, type Reader } from './reader.ts'
import { decodeText } from './secrets.ts'
import { fileKeys } from './settings.ts'
import type { ConfigTable } from './tables.ts'
import { quote, type Parsed } from './values.ts'

type TableKind = Pick<ProviderKind, 'kind' | 'fields' | 'oneOf' | 'together'>

/**
 * Creates the reader of tables that have a kind, such as `[[providers]]` and `[[alerts]]`. Secrets are not allowed in the
 * configuration file itself: `authTokenFile` names a file that contains the secret, `authTokenEnv` an environment variable.
 * Commands that send nothing need neither: the secrets of the server are not in the shell of an operator.
 *
 * @param options.list name of the list in the file
 * @param options.one what a table describes, as messages name it; `many` begins a sentence
 * @param options.commonKeys settings that every kind has, which other code reads
 * @param options.isReadElsewhere whether other code reads a key as well
 */
export function createTableReader<Kind extends TableKind>(
  reader: Reader,
  input: ConfigInput,
  options: {
    use: ConfigUse
    kinds: readonly Kind[]
    list: string
    one: string
    many: string
    commonKeys: readonly string[]
    isReadElsewhere?: (key: string) => boolean
  },
) {
  const { report } = reader
  const { use, kinds, list, one, many, commonKeys, isReadElsewhere = () => false } = options
  return { readKind, readSwitch, readValues }

  function readKind({ source, keys }: ConfigTable): Kind | undefined {
    const entry = keys.get('kind')
    const kindNames = kinds.map(({ kind }) => kind)
    const matchingKind = kinds.find(({ kind }) => kind === entry?.value)
    if (matchingKind) return matchingKind
    const message = entry ? `There is no such ${one} kind.` : `The ${one} has no kind.`
    const suggestion = typeof entry?.value === 'string' ? suggest(entry.value, kindNames) : undefined
    report(entry?.source ?? source, message, suggestion ?? `Use one of ${kindNames.join(', ')}.`)
    return undefined
  }

  /** Reads a setting that every kind has, which is true or false. */
  function readSwitch({ keys }: ConfigTable, key: string, name: string): boolean | undefined {
    const entry = keys.get(key)
    if (!entry) return undefined
    const { value, source } = entry
    if (typeof value !== 'boolean') {
      report(source, `${key} must be true or false.`, `Write ${key} = true, without quotes, or remove it.`)
      return undefined
    }
    reader.values.push({ setting: `${list}.${name}.${key}`, value: String(value), origin: source })
    return value
  }

  /** Reads the settings of one table; undefined if any of them has a problem. */
  function readValues(table: ConfigTable, kind: Kind, name: string): Record<string, string> | undefined {
    const values: Record<string, string> = {}
    const sources = new Map<string, string>()
    let isValid = true
    const reportFault = (source: string, message: string, remedy: string) => {
      report(source, message, remedy)
      isValid = false
    }
    for (const [key, { value, source }] of table.keys) {
      if (commonKeys.includes(key) || isReadElsewhere(key)) continue
      const { field, valueSource } = parseFieldKey(key, kind)
      const setting = kind.fields[field]
      const fieldNames = [...Object.keys(kind.fields), ...commonKeys]
      if (!setting) {
        reportFault(
          source,
          `${many} of kind ${kind.kind} have no setting ${key}.`,
          suggest(key, [...fieldNames, ...fileKeys]) ?? `Use ${fieldNames.join(', ')}.`,
        )
      } else if (sources.has(field)) {
        reportFault(
          source,
          `${field} is set twice.`,
          `Keep one of them; the other is at ${sources.get(field)}.`,
        )
      } else if (setting.secret && valueSource === 'value') {
        sources.set(field, source)
        reportFault(
          source,
          `${field} is a secret and must not be in this file.`,
          `Use ${field}File or ${field}Env instead.`,
        )
      } else {
        sources.set(field, source)
        const text = readText(key, value, valueSource)
        if ('fault' in text) {
          if (valueSource === 'value' || isForServer(use)) reportFault(source, text.fault, text.remedy)
          // As the server shows it, so that it does not look changed.
          else reader.values.push({ setting: `${list}.${name}.${field}`, value: '(set)', origin: source })
        } else {
          values[field] = text.value
          const isHidden = setting.secret || text.value.startsWith('-----BEGIN ')
          const shown = isHidden ? '(set)' : text.value
          reader.values.push({ setting: `${list}.${name}.${field}`, value: shown, origin: source })
        }
      }
    }
    for (const { name: field, fault: problem, remedy } of findSettingFaults(kind, values)) {
      // A setting that could not be read has been reported already.
      if (values[field] === undefined && sources.has(field)) continue
      const hint = kind.fields[field]?.secret
        ? ` Name a file in ${field}File or a variable in ${field}Env.`
        : ''
      reportFault(sources.get(field) ?? table.source, `${field} ${problem}.`, remedy + hint)
    }
    return isValid ? values : undefined
  }

  function readText(key: string, value: unknown, valueSource: 'value' | 'file' | 'variable') {
    if (valueSource === 'value' && (typeof value === 'number' || typeof value === 'boolean'))
      return { value: String(value) }
    if (typeof value !== 'string')
      return {
        fault: `${key} must be a string.`,
        remedy: Array.isArray(value)
          ? `Write its values in one string, separated by commas: ${key} = "…"`
          : 'Put it in quotes.',
      }
    if (valueSource === 'value') return { value }
    return valueSource === 'file' ? readSecretFile(key, value) : readVariable(key, value)
  }

  function readSecretFile(key: string, path: string): Parsed<string> {
    const content = tryReadFile(input, resolve(reader.configFileDir(), path))
    // A value that names no file may be the secret itself, which must not be repeated.
    if ('missing' in content)
      return {
        fault: `There is no file of the name in ${key}.`,
        remedy: `Correct the name; a relative one begins at ${reader.configFileDir()}. If it is the secret itself, put it into a file of its own, and replace it.`,
      }
    if (!('bytes' in content))
      return { ...content, remedy: 'Correct the path or the permissions of the file.' }
    const text = decodeText(content.bytes)?.replace(/\r?\n$/, '')
    if (text) return { value: text }
    return {
      fault: 'The secret file is empty or not UTF-8 text.',
      remedy: 'Write the secret to the file, and nothing else.',
    }
  }

  function readVariable(key: string, name: string): Parsed<string> {
    if (name.startsWith('OTPD_') && !name.startsWith(secretPrefix)) {
      return {
        fault: `${quote(name)} is reserved: variables that begin with OTPD_ are settings.`,
        remedy: `Name it ${secretPrefix}…, or anything without the prefix OTPD_.`,
      }
    }
    const text = input.env[name]
    if (text) return { value: text }
    const bare = name.replace(/^\$\{?(\w+)\}?$/, '$1')
    if (bare !== name && input.env[bare])
      return { fault: `${key} has a $ before the name.`, remedy: `Write ${key} = ${quote(bare)}.` }
    // A value that cannot be a name may be the secret itself, which must not be repeated.
    if (!/^[A-Z_][A-Z0-9_]*$/.test(name))
      return {
        fault: `${key} must be the name of an environment variable; this is none that is set.`,
        remedy: `Write ${key} = "NAME" and put the secret into the variable NAME. If the secret was in this file, replace it.`,
      }
    return {
      fault: `The environment variable ${quote(name)} is empty or not set.`,
      remedy: 'Set it for the server, and restart it; in a shell, set it for this command too.',
    }
  }
}

/** Parses a key: `authTokenFile` is the file for `authToken`, unless the kind has a field of exactly that name. */
function parseFieldKey(
  key: string,
  { fields }: TableKind,
): { field: string; valueSource: 'value' | 'file' | 'variable' } {
  if (Object.hasOwn(fields, key)) return { field: key, valueSource: 'value' }
  if (key.endsWith('File')) return { field: key.slice(0, -'File'.length), valueSource: 'file' }
  if (key.endsWith('Env')) return { field: key.slice(0, -'Env'.length), valueSource: 'variable' }
  return { field: key, valueSource: 'value' }
}
