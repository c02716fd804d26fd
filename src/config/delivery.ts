import { resolve } from 'node:path'
import { findSettingFaults, type ProviderKind } from '../delivery/kit/provider-kinds.ts'
import { providerKinds } from '../delivery/providers/all-provider-kinds.ts'
import {
  inboxProvider,
  type DeliverySettings,
  type ProviderSettings,
  type Route,
} from '../domain/model/delivery.ts'
import { channels, type Channel } from '../domain/model/request.ts'
import type { FileEntry } from './toml-file.ts'
import { tryReadFile } from './paths.ts'
import { secretPrefix, type ConfigInput, type Reader } from './reader.ts'
import { decodeText } from './secrets.ts'
import { suggest } from './suggestion.ts'
import { quote } from './values.ts'

/** One `[[providers]]` or `[[routes]]` table: its keys with their values and source lines. */
type ConfigTable = { source: string; keys: ReadonlyMap<string, { value: unknown; source: string }> }

const namePattern = /^[a-z][a-z0-9-]{0,31}$/

/**
 * Reads the `[[providers]]` and `[[routes]]` tables. Secrets are not allowed in the configuration file itself:
 * `authTokenFile` names a file that contains the secret, `authTokenEnv` an environment variable.
 */
export function readDelivery(
  reader: Reader,
  input: ConfigInput,
  entries: readonly FileEntry[],
  kinds: readonly ProviderKind[] = providerKinds,
): DeliverySettings {
  const { report } = reader
  /** Includes providers with problems, so that a route to one of them is not reported as well. */
  const names = new Map<string, ProviderKind | undefined>()
  const providers: ProviderSettings[] = []
  for (const table of collectTables(reader, entries, 'providers')) {
    const name = readName(table)
    const kind = readKind(table)
    if (name !== undefined) names.set(name, kind)
    if (name !== undefined && kind) {
      reader.values.push({ setting: `providers.${name}.kind`, value: kind.kind, origin: table.source })
    }
    const values = kind && readValues(table, kind, name ?? '?')
    if (name !== undefined && kind && values) providers.push({ name, kind: kind.kind, values })
  }
  const routes = [...collectTables(reader, entries, 'routes').entries()].flatMap(([index, table]) =>
    readRoute(table, index),
  )
  return { providers, routes }

  function readName({ source, keys }: ConfigTable): string | undefined {
    const entry = keys.get('name')
    const location = entry?.source ?? source
    if (typeof entry?.value !== 'string' || !namePattern.test(entry.value) || entry.value === inboxProvider) {
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
      if (key === 'name' || key === 'kind') continue
      const { field, valueSource } = parseFieldKey(key, kind)
      const setting = kind.fields[field]
      const fieldNames = Object.keys(kind.fields)
      if (!setting) {
        reportFault(
          source,
          `Providers of kind ${kind.kind} have no setting ${key}.`,
          suggest(key, fieldNames) ?? `Use ${fieldNames.join(', ')}.`,
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
        const text = readText(value, valueSource)
        if ('fault' in text) reportFault(source, text.fault, text.remedy)
        else {
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

  function readText(value: unknown, valueSource: 'value' | 'file' | 'variable') {
    if (valueSource === 'value' && (typeof value === 'number' || typeof value === 'boolean'))
      return { value: String(value) }
    if (typeof value !== 'string')
      return { fault: 'The value must be a string.', remedy: 'Put it in quotes.' }
    if (valueSource === 'value') return { value }
    return valueSource === 'file' ? readSecretFile(value) : readVariable(value)
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

  function readVariable(name: string) {
    if (name.startsWith('OTPD_') && !name.startsWith(secretPrefix)) {
      return {
        fault: `${quote(name)} is reserved: variables that begin with OTPD_ are settings.`,
        remedy: `Name it ${secretPrefix}…, or anything without the prefix OTPD_.`,
      }
    }
    const text = input.env[name]
    if (text) return { value: text }
    return {
      fault: `The environment variable ${quote(name)} is empty or not set.`,
      remedy: 'Set it for the server.',
    }
  }

  function readRoute({ source, keys }: ConfigTable, index: number): Route[] {
    const problemsBefore = reader.problems.length
    const keySource = (key: string) => keys.get(key)?.source ?? source
    for (const key of keys.keys()) {
      if (!routeKeys.includes(key)) {
        report(
          keySource(key),
          `Routes have no setting ${key}.`,
          suggest(key, routeKeys) ?? `Use ${routeKeys.join(', ')}.`,
        )
      }
    }
    const channel = channels.find((candidate) => candidate === keys.get('channel')?.value)
    if (!channel)
      report(keySource('channel'), 'The route has no valid channel.', `Use one of ${channels.join(', ')}.`)
    const readList = (key: string, pattern: RegExp, example: string) => {
      const value = keys.get(key)?.value ?? []
      const isList = (candidate: unknown): candidate is string[] =>
        Array.isArray(candidate) && candidate.every((word) => typeof word === 'string' && pattern.test(word))
      if (isList(value)) return value
      report(keySource(key), `${key} is not a valid list.`, `Write it as ${example}.`)
      return []
    }
    const route = {
      channel: channel ?? 'sms',
      countries: readList('countries', /^[A-Z]{2}$/, '["NL", "BE"]'),
      prefixes: readList('prefixes', /^\+[1-9]\d{0,14}$/, '["+31", "+3246"]'),
      applications: readList('applications', /^app_[0-9a-z]{26}$/, '["app_…"], with application ids'),
      providers: readList('providers', namePattern, '["main", "spare"]'),
    }
    checkProviders(route.providers, keySource('providers'), channel)
    if (reader.problems.length > problemsBefore) return []
    for (const [key, value] of Object.entries(route)) {
      if (value.length > 0)
        reader.values.push({ setting: `routes.${index + 1}.${key}`, value, origin: source })
    }
    return [route]
  }

  function checkProviders(providerNames: readonly string[], source: string, channel: Channel | undefined) {
    if (providerNames.length === 0) report(source, 'The route has no providers.', 'Add providers = ["NAME"].')
    if (providerNames.includes(inboxProvider) && providerNames.length > 1) {
      report(
        source,
        `${inboxProvider} cannot be combined with other providers.`,
        `Use providers = ["${inboxProvider}"], or remove it.`,
      )
    }
    for (const name of providerNames) {
      const kind = names.get(name)
      if (name === inboxProvider) continue
      if (!names.has(name))
        report(
          source,
          `There is no provider ${name}.`,
          suggest(name, [...names.keys()]) ?? 'Add a [[providers]] table with that name.',
        )
      else if (channel && kind && !kind.channels.includes(channel)) {
        report(
          source,
          `${kind.title} does not support ${channel}.`,
          `It supports ${kind.channels.join(', ')}.`,
        )
      }
    }
  }
}

const routeKeys: readonly string[] = ['channel', 'countries', 'prefixes', 'applications', 'providers']

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

/** Groups the entries of a top-level list by table, in file order. */
function collectTables(reader: Reader, entries: readonly FileEntry[], list: string): ConfigTable[] {
  const tables = new Map<string, { source: string; keys: Map<string, { value: unknown; source: string }> }>()
  for (const entry of entries) {
    const [section, index = '', ...path] = entry.path
    if (section !== list) continue
    const source = reader.formatSource(entry)
    if (!/^\d+$/.test(index)) {
      reader.report(source, `${list} must be a list of tables.`, `Write [[${list}]] and the keys below it.`)
      continue
    }
    const table = tables.get(index) ?? { source, keys: new Map() }
    if (path.length > 0) table.keys.set(path.join('.'), { value: entry.value, source })
    tables.set(index, table)
  }
  return [...tables.values()]
}
