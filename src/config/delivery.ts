import { resolve } from 'node:path'
import { findSettingFaults, type ProviderKind } from '../delivery/kit/kinds.ts'
import { providerKinds } from '../delivery/providers/kinds-list.ts'
import {
  inboxProvider,
  type DeliverySettings,
  type ProviderSettings,
  type Route,
} from '../domain/model/delivery.ts'
import { channels, type Channel } from '../domain/model/request.ts'
import type { FileEntry } from './file.ts'
import { readBytes } from './places.ts'
import { secretPrefix, type ConfigInput, type Reader } from './reader.ts'
import { decodeText } from './secrets.ts'
import { suggest } from './suggestion.ts'
import { quote } from './values.ts'

/** One `[[providers]]` or `[[routes]]` table: its keys with their values and lines. */
type Item = { source: string; keys: ReadonlyMap<string, { value: unknown; source: string }> }

const nameForm = /^[a-z][a-z0-9-]{0,31}$/

/**
 * Reads the `[[providers]]` and `[[routes]]` tables. A secret never stands in the file: `authTokenFile` names a file that
 * holds it, `authTokenEnv` a variable of the environment.
 */
export function readDelivery(
  reader: Reader,
  input: ConfigInput,
  entries: readonly FileEntry[],
  kinds: readonly ProviderKind[] = providerKinds,
): DeliverySettings {
  const { report } = reader
  /** Also of providers with faults: a route to one of them has none of its own. */
  const names = new Map<string, ProviderKind | undefined>()
  const providers: ProviderSettings[] = []
  for (const item of itemsOf(reader, entries, 'providers')) {
    const name = readName(item)
    const kind = readKind(item)
    if (name !== undefined) names.set(name, kind)
    if (name !== undefined && kind) {
      reader.values.push({ setting: `providers.${name}.kind`, value: kind.kind, origin: item.source })
    }
    const values = kind && readValues(item, kind, name ?? '?')
    if (name !== undefined && kind && values) providers.push({ name, kind: kind.kind, values })
  }
  const routes = [...itemsOf(reader, entries, 'routes').entries()].flatMap(([index, item]) =>
    readRoute(item, index),
  )
  return { providers, routes }

  function readName({ source, keys }: Item): string | undefined {
    const given = keys.get('name')
    const at = given?.source ?? source
    if (typeof given?.value !== 'string' || !nameForm.test(given.value) || given.value === inboxProvider) {
      const message = given ? 'This cannot name a provider.' : 'The provider has no name.'
      report(at, message, `Use up to 32 of a to z, 0 to 9 and -, a letter first, and not ${inboxProvider}.`)
      return undefined
    }
    if (!names.has(given.value)) return given.value
    report(at, `There is a provider ${given.value} already.`, 'Give each a name of its own.')
    return undefined
  }

  function readKind({ source, keys }: Item): ProviderKind | undefined {
    const given = keys.get('kind')
    const known = kinds.map(({ kind }) => kind)
    const found = kinds.find(({ kind }) => kind === given?.value)
    if (found) return found
    const message = given ? 'There is no such kind of provider.' : 'The provider has no kind.'
    const near = typeof given?.value === 'string' ? suggest(given.value, known) : undefined
    report(given?.source ?? source, message, near ?? `Give one of ${known.join(', ')}.`)
    return undefined
  }

  /** The settings of a provider, or undefined where they have faults. */
  function readValues(item: Item, kind: ProviderKind, name: string): Record<string, string> | undefined {
    const values: Record<string, string> = {}
    const sources = new Map<string, string>()
    let sound = true
    const fault = (source: string, message: string, remedy: string) => {
      report(source, message, remedy)
      sound = false
    }
    for (const [key, { value, source }] of item.keys) {
      if (key === 'name' || key === 'kind') continue
      const { field, from } = fieldOf(key, kind)
      const setting = kind.fields[field]
      const known = Object.keys(kind.fields)
      if (!setting) {
        fault(
          source,
          `A provider of the kind ${kind.kind} has no ${key}.`,
          suggest(key, known) ?? `It has ${known.join(', ')}.`,
        )
      } else if (sources.has(field)) {
        fault(source, `${field} is given twice.`, `Keep one of them: the other is in ${sources.get(field)}.`)
      } else if (setting.secret && from === 'value') {
        sources.set(field, source)
        fault(
          source,
          `${field} is a secret, and this file is not.`,
          `Give ${field}File or ${field}Env in its place.`,
        )
      } else {
        sources.set(field, source)
        const text = readText(value, from)
        if ('fault' in text) fault(source, text.fault, text.remedy)
        else {
          values[field] = text.value
          const shown = setting.secret ? '(set)' : text.value
          reader.values.push({ setting: `providers.${name}.${field}`, value: shown, origin: source })
        }
      }
    }
    for (const { name: field, fault: what, remedy } of findSettingFaults(kind, values)) {
      // What was given and could not be read has been told already.
      if (values[field] === undefined && sources.has(field)) continue
      const hint = kind.fields[field]?.secret
        ? ` Name a file in ${field}File or a variable in ${field}Env.`
        : ''
      fault(sources.get(field) ?? item.source, `${field} ${what}.`, remedy + hint)
    }
    return sound ? values : undefined
  }

  function readText(value: unknown, from: 'value' | 'file' | 'variable') {
    if (from === 'value' && (typeof value === 'number' || typeof value === 'boolean'))
      return { value: String(value) }
    if (typeof value !== 'string') return { fault: 'The value must be a text.', remedy: 'Put it in quotes.' }
    if (from === 'value') return { value }
    return from === 'file' ? readSecretFile(value) : readVariable(value)
  }

  function readSecretFile(path: string) {
    const content = readBytes(input, resolve(reader.baseOfFile(), path))
    if (!('bytes' in content)) return { ...content, remedy: 'Correct the path or the rights of the file.' }
    const text = decodeText(content.bytes)?.replace(/\r?\n$/, '')
    if (text) return { value: text }
    return {
      fault: 'The file of the secret is empty, or not UTF-8 text.',
      remedy: 'Put the secret there alone.',
    }
  }

  function readVariable(name: string) {
    if (name.startsWith('OTPD_') && !name.startsWith(secretPrefix)) {
      return {
        fault: `${quote(name)} is a setting's name.`,
        remedy: `Call it ${secretPrefix}… or anything else.`,
      }
    }
    const text = input.env[name]
    if (text) return { value: text }
    return { fault: `There is no variable ${quote(name)}, or it is empty.`, remedy: 'Set it for the server.' }
  }

  function readRoute({ source, keys }: Item, index: number): Route[] {
    const before = reader.problems.length
    const at = (key: string) => keys.get(key)?.source ?? source
    for (const key of keys.keys()) {
      if (!routeKeys.includes(key)) {
        report(
          at(key),
          `A route has no ${key}.`,
          suggest(key, routeKeys) ?? `It has ${routeKeys.join(', ')}.`,
        )
      }
    }
    const channel = channels.find((one) => one === keys.get('channel')?.value)
    if (!channel) report(at('channel'), 'The route has no channel.', `Give one of ${channels.join(', ')}.`)
    const list = (key: string, form: RegExp, example: string) => {
      const value = keys.get(key)?.value ?? []
      const isList = (given: unknown): given is string[] =>
        Array.isArray(given) && given.every((word) => typeof word === 'string' && form.test(word))
      if (isList(value)) return value
      report(at(key), `${key} does not look right.`, `Write it as ${example}.`)
      return []
    }
    const route = {
      channel: channel ?? 'sms',
      countries: list('countries', /^[A-Z]{2}$/, '["NL", "BE"]'),
      prefixes: list('prefixes', /^\+[1-9]\d{0,14}$/, '["+31", "+3246"]'),
      applications: list('applications', /^app_[0-9a-z]{26}$/, '["app_…"], with ids of applications'),
      providers: list('providers', nameForm, '["main", "spare"]'),
    }
    checkProviders(route.providers, at('providers'), channel)
    if (reader.problems.length > before) return []
    for (const [key, value] of Object.entries(route)) {
      if (value.length > 0)
        reader.values.push({ setting: `routes.${index + 1}.${key}`, value, origin: source })
    }
    return [route]
  }

  function checkProviders(wanted: readonly string[], source: string, channel: Channel | undefined) {
    if (wanted.length === 0) report(source, 'The route names no provider.', 'Give providers = ["NAME"].')
    if (wanted.includes(inboxProvider) && wanted.length > 1) {
      report(source, 'What stays in the inbox goes nowhere else.', `Let ${inboxProvider} stand alone.`)
    }
    for (const name of wanted) {
      const kind = names.get(name)
      if (name === inboxProvider) continue
      if (!names.has(name))
        report(source, `There is no provider ${name}.`, suggest(name, [...names.keys()]) ?? 'Add it.')
      else if (channel && kind && !kind.channels.includes(channel)) {
        report(source, `${kind.title} has no ${channel}.`, `It has ${kind.channels.join(', ')}.`)
      }
    }
  }
}

const routeKeys: readonly string[] = ['channel', 'countries', 'prefixes', 'applications', 'providers']

/** `authTokenFile` is the file of `authToken`, unless there is a field of that very name. */
function fieldOf(
  key: string,
  { fields }: ProviderKind,
): { field: string; from: 'value' | 'file' | 'variable' } {
  if (Object.hasOwn(fields, key)) return { field: key, from: 'value' }
  if (key.endsWith('File')) return { field: key.slice(0, -'File'.length), from: 'file' }
  if (key.endsWith('Env')) return { field: key.slice(0, -'Env'.length), from: 'variable' }
  return { field: key, from: 'value' }
}

function itemsOf(reader: Reader, entries: readonly FileEntry[], list: string): Item[] {
  const items = new Map<string, { source: string; keys: Map<string, { value: unknown; source: string }> }>()
  for (const entry of entries) {
    const [section, index = '', ...path] = entry.path
    if (section !== list) continue
    const source = reader.at(entry)
    if (!/^\d+$/.test(index)) {
      reader.report(source, `${list} is a list of tables.`, `Write [[${list}]] and the keys below.`)
      continue
    }
    const item = items.get(index) ?? { source, keys: new Map() }
    if (path.length > 0) item.keys.set(path.join('.'), { value: entry.value, source })
    items.set(index, item)
  }
  return [...items.values()]
}
