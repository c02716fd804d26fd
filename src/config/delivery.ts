import { resolve } from 'node:path'
import { findSettingFaults, type ProviderKind } from '../delivery/kit/provider-kinds.ts'
import { providerKinds } from '../delivery/providers/all-provider-kinds.ts'
import { inboxProvider, type DeliverySettings, type ProviderSettings } from '../domain/model/delivery.ts'
import { isForServer, type ConfigUse } from './database.ts'
import type { FileEntry } from './toml-file.ts'
import { tryReadFile } from './paths.ts'
import { isPriceKey, readCurrency, readPrices } from './prices.ts'
import { secretPrefix, type ConfigInput, type Reader } from './reader.ts'
import { readRoutes } from './routes.ts'
import { decodeText } from './secrets.ts'
import { fileKeys } from './settings.ts'
import { suggest } from '../shared/suggestion.ts'
import { collectTables, providerNamePattern, type ConfigTable } from './tables.ts'
import { quote } from './values.ts'

/**
 * Reads the `[[providers]]` and `[[routes]]` tables. Secrets are not allowed in the configuration file itself:
 * `authTokenFile` names a file that contains the secret, `authTokenEnv` an environment variable. Commands that send
 * nothing need neither: the secrets of the server are not in the shell of an operator.
 */
export function readDelivery(
  reader: Reader,
  input: ConfigInput,
  entries: readonly FileEntry[],
  use: ConfigUse = 'serve',
  kinds: readonly ProviderKind[] = providerKinds,
): DeliverySettings {
  const { report } = reader
  /** Includes providers with problems, so that a route to one of them is not reported as well. */
  const names = new Map<string, ProviderKind | undefined>()
  const providers: ProviderSettings[] = []
  let firstPrice: string | undefined
  for (const table of collectTables(reader, entries, 'providers')) {
    const name = readName(table)
    const kind = readKind(table)
    if (name !== undefined) names.set(name, kind)
    if (name !== undefined && kind) {
      reader.values.push({ setting: `providers.${name}.kind`, value: kind.kind, origin: table.source })
    }
    const values = kind && readValues(table, kind, name ?? '?')
    const failoverOnBlock = readSwitch(table, 'failoverOnBlock', name ?? '?')
    const feedback = readSwitch(table, 'feedback', name ?? '?')
    const prices = readPrices(reader, input, table, name ?? '?')
    firstPrice ??= [...table.keys].find(([key]) => isPriceKey(key))?.[1].source
    if (name !== undefined && kind && values) {
      const common = {
        ...(failoverOnBlock && { failoverOnBlock }),
        ...(feedback === false && { feedback }),
        ...(prices && { prices }),
      }
      providers.push({ name, kind: kind.kind, values, ...common })
    }
  }
  const routes = readRoutes(reader, collectTables(reader, entries, 'routes'), names)
  const currency = readCurrency(reader, firstPrice)
  return { providers, routes, ...(currency !== null && { currency }) }

  function readName({ source, keys }: ConfigTable): string | undefined {
    const entry = keys.get('name')
    const location = entry?.source ?? source
    if (
      typeof entry?.value !== 'string' ||
      !providerNamePattern.test(entry.value) ||
      entry.value === inboxProvider
    ) {
      const message = entry ? 'This is not a valid provider name.' : 'The provider has no name.'
      report(
        location,
        message,
        `Use at most 32 characters of a-z, 0-9 and -, starting with a letter, and not ${inboxProvider}.`,
      )
      return undefined
    }
    if (!names.has(entry.value)) return entry.value
    report(location, `Another provider is already named ${entry.value}.`, 'Give each provider a unique name.')
    return undefined
  }

  function readKind({ source, keys }: ConfigTable): ProviderKind | undefined {
    const entry = keys.get('kind')
    const kindNames = kinds.map(({ kind }) => kind)
    const matchingKind = kinds.find(({ kind }) => kind === entry?.value)
    if (matchingKind) return matchingKind
    const message = entry ? 'There is no such provider kind.' : 'The provider has no kind.'
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
    reader.values.push({ setting: `providers.${name}.${key}`, value: String(value), origin: source })
    return value
  }

  /** Reads the settings of a provider; undefined if any of them has a problem. */
  function readValues(
    table: ConfigTable,
    kind: ProviderKind,
    name: string,
  ): Record<string, string> | undefined {
    const values: Record<string, string> = {}
    const sources = new Map<string, string>()
    let isValid = true
    const reportFault = (source: string, message: string, remedy: string) => {
      report(source, message, remedy)
      isValid = false
    }
    for (const [key, { value, source }] of table.keys) {
      if (commonKeys.includes(key) || isPriceKey(key)) continue
      const { field, valueSource } = parseFieldKey(key, kind)
      const setting = kind.fields[field]
      const fieldNames = [...Object.keys(kind.fields), ...commonKeys]
      if (!setting) {
        reportFault(
          source,
          `Providers of kind ${kind.kind} have no setting ${key}.`,
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
          else reader.values.push({ setting: `providers.${name}.${field}`, value: '(set)', origin: source })
        } else {
          values[field] = text.value
          const shown = setting.secret ? '(set)' : text.value
          reader.values.push({ setting: `providers.${name}.${field}`, value: shown, origin: source })
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
    return valueSource === 'file' ? readSecretFile(value) : readVariable(key, value)
  }

  function readSecretFile(path: string) {
    const content = tryReadFile(input, resolve(reader.configFileDir(), path))
    if (!('bytes' in content))
      return { ...content, remedy: 'Correct the path or the permissions of the file.' }
    const text = decodeText(content.bytes)?.replace(/\r?\n$/, '')
    if (text) return { value: text }
    return {
      fault: 'The secret file is empty or not UTF-8 text.',
      remedy: 'Write the secret to the file, and nothing else.',
    }
  }

  function readVariable(key: string, name: string) {
    if (name.startsWith('OTPD_') && !name.startsWith(secretPrefix)) {
      return {
        fault: `${quote(name)} is reserved: variables that begin with OTPD_ are settings.`,
        remedy: `Name it ${secretPrefix}…, or anything without the prefix OTPD_.`,
      }
    }
    const text = input.env[name]
    if (text) return { value: text }
    // A value that cannot be a name may be the secret itself, which must not be repeated.
    if (!/^[A-Z_][A-Z0-9_]*$/.test(name))
      return {
        fault: `${key} must be the name of an environment variable; this is none that is set.`,
        remedy: `Write ${key} = "NAME" and put the secret into the variable NAME. If the secret was in this file, replace it.`,
      }
    return {
      fault: `The environment variable ${quote(name)} is empty or not set.`,
      remedy: 'Set it for the server; in a shell, also for this command.',
    }
  }
}

/** Settings that every kind of provider has. */
const commonKeys: readonly string[] = ['name', 'kind', 'failoverOnBlock', 'feedback', 'price', 'prices']

/** Parses a key: `authTokenFile` is the file for `authToken`, unless the kind has a field of exactly that name. */
function parseFieldKey(
  key: string,
  { fields }: ProviderKind,
): { field: string; valueSource: 'value' | 'file' | 'variable' } {
  if (Object.hasOwn(fields, key)) return { field: key, valueSource: 'value' }
  if (key.endsWith('File')) return { field: key.slice(0, -'File'.length), valueSource: 'file' }
  if (key.endsWith('Env')) return { field: key.slice(0, -'Env'.length), valueSource: 'variable' }
  return { field: key, valueSource: 'value' }
}
