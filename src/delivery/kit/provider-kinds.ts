import type { Channel } from '../../domain/model/request.ts'
import type { Clock } from '../../domain/model/clock.ts'
import type { ProviderHttp } from './http-client.ts'
import type { Provider } from './provider.ts'

/** One setting of a kind of provider, so that configuration, help and documentation know it without running it. */
export type SettingField = {
  /** One phrase, for help texts. Says where at the provider the value is found where that is not obvious. */
  description: string
  required?: true
  /** Never shown, and may be read from a file or the environment. */
  secret?: true
  /** What holds where nothing is given. */
  default?: string
  /** What the whole value must look like. */
  pattern?: RegExp
  choices?: readonly string[]
  /** An https address; http only on loopback. */
  url?: true
  /** May have several lines; any other field stands in a header or an address some day. */
  multiline?: true
  /** Shown where the value does not fit. */
  example?: string
}

export type SettingFields = Readonly<Record<string, SettingField>>

/** What a factory gets: a string for each field that must be given or has a default. */
export type SettingValues<Fields extends SettingFields> = {
  [Name in keyof Fields]: Fields[Name] extends { required: true } | { default: string }
    ? string
    : string | undefined
}

export type ProviderNeeds = {
  http: ProviderHttp
  clock: Clock
}

/** One kind of provider: what must be known to have one, and how to make it. */
export type ProviderKind = {
  /** As the configuration names it. */
  kind: string
  /** As the provider names itself. */
  title: string
  /** Every channel that it can carry with the right settings; a `Provider` says what it carries with its own. */
  channels: readonly Channel[]
  fields: SettingFields
  /** Exactly one of these must be given. */
  oneOf?: readonly string[]
  /** Of each of these sets all must be given, or none. */
  together?: readonly (readonly string[])[]
  /** Throws where the values have faults: ask `findSettingFaults` first. */
  create(values: Readonly<Record<string, string>>, needs: ProviderNeeds): Provider
}

type KindDefinition<Fields extends SettingFields> = Omit<
  ProviderKind,
  'fields' | 'oneOf' | 'together' | 'create'
> & {
  fields: Fields
  oneOf?: readonly (keyof Fields & string)[]
  together?: readonly (readonly (keyof Fields & string)[])[]
  create(values: SettingValues<Fields>, needs: ProviderNeeds): Provider
}

/** Types the values of a kind by its fields. */
export function defineKind<const Fields extends SettingFields>(
  definition: KindDefinition<Fields>,
): ProviderKind {
  const kind: ProviderKind = {
    ...definition,
    create(values, needs) {
      const faults = findSettingFaults(kind, values)
      if (faults.length > 0) throw new Error(`${definition.kind}: settings that have not been checked`)
      return definition.create(fillDefaults(definition.fields, values), needs)
    },
  }
  return kind
}

export type SettingFault = { name: string; fault: string; remedy: string }

/** Every fault of the settings, in the order of the fields. Never repeats a value: it may be a secret. */
export function findSettingFaults(
  { fields, oneOf = [], together = [] }: Pick<ProviderKind, 'fields' | 'oneOf' | 'together'>,
  values: Readonly<Record<string, string>>,
): SettingFault[] {
  const faults: SettingFault[] = []
  for (const name of Object.keys(values)) {
    if (Object.hasOwn(fields, name)) continue
    faults.push({ name, fault: 'is not known', remedy: `Known are ${Object.keys(fields).join(', ')}.` })
  }
  for (const [name, field] of Object.entries(fields)) {
    const value = values[name]
    const problem = value === undefined ? findMissing(field) : findFault(field, value)
    if (problem) faults.push({ name, ...problem })
  }
  const presentNames = oneOf.filter((name) => values[name] !== undefined)
  const [first] = oneOf
  if (first !== undefined && presentNames.length !== 1) {
    const fault =
      presentNames.length === 0 ? 'is missing' : `stands beside ${presentNames.slice(1).join(' and ')}`
    faults.push({ name: presentNames[0] ?? first, fault, remedy: `Give exactly one of ${oneOf.join(', ')}.` })
  }
  for (const group of together) {
    const absent = group.filter((name) => values[name] === undefined)
    if (absent.length === group.length) continue
    for (const name of absent) {
      faults.push({ name, fault: 'is missing', remedy: `Give ${group.join(' and ')} together.` })
    }
  }
  return faults
}

function findMissing({ required, description }: SettingField) {
  return required ? { fault: 'is missing', remedy: `Give ${description}.` } : undefined
}

function findFault(field: SettingField, value: string): Omit<SettingFault, 'name'> | undefined {
  const example = field.example === undefined ? '' : `, such as ${field.example}`
  if (value === '') return { fault: 'is empty', remedy: `Give ${field.description}${example}.` }
  if (field.choices && !field.choices.includes(value)) {
    return { fault: 'is not one of the choices', remedy: `Give one of ${field.choices.join(', ')}.` }
  }
  if (field.url && !isSafeUrl(value)) {
    return { fault: 'is not an https address', remedy: 'Give an https address; http only on loopback.' }
  }
  const isSafe = field.multiline || !/\p{Cc}/u.test(value)
  if (!isSafe || (field.pattern && !field.pattern.test(value))) {
    return { fault: 'does not look right', remedy: `Give ${field.description}${example}.` }
  }
  return undefined
}

/** No user name, query or fragment: paths are put at its end. */
function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text) || /[?#\s]/.test(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  if (protocol === 'https:') return true
  return protocol === 'http:' && /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}

function fillDefaults<Fields extends SettingFields>(
  fields: Fields,
  settings: Readonly<Record<string, string>>,
): SettingValues<Fields> {
  const values = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      field.url ? (settings[name] ?? field.default)?.replace(/\/+$/, '') : (settings[name] ?? field.default),
    ]),
  )
  // Object.fromEntries forgets the names; the faults that were looked for are exactly what the type promises.
  return values as SettingValues<Fields>
}

/** The field that every provider has: where its interface is. Comes without a slash at its end. */
export const baseUrlField = <const Url extends string>(url: Url) =>
  ({ description: 'the address of the interface', default: url, url: true }) as const
