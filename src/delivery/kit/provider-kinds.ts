import { channels as allChannels, type Channel } from '../../domain/model/request.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { isSafeUrl } from '../../shared/safe-url.ts'
import type { ProviderHttp } from './http-client.ts'
import type { Provider } from './provider.ts'
import type { World } from '../../world/world.ts'

/**
 * Declares one setting of a provider kind. Configuration checks, help and documentation are derived from it.
 */
type SettingField = {
  /** Noun phrase for help texts. Says where to find the value at the provider, unless that is obvious. */
  description: string
  required?: true
  /** Never shown; may be read from a file or an environment variable. */
  secret?: true
  /** Used if the setting is missing. */
  default?: string
  /** Must match the whole value. */
  pattern?: RegExp
  /** Checks what a pattern cannot, such as a key. */
  isValid?: (value: string) => boolean
  choices?: readonly string[]
  /** Must be https, or http on loopback. A `whole` URL may have a query; paths are appended to a `base`. */
  url?: 'base' | 'whole'
  /** Names of the placeholders (`{{text}}`) that a value may contain, which its pattern checks. */
  placeholders?: readonly string[]
  /** May contain line breaks. Other fields may not: they can end up in a header or a URL. */
  multiline?: true
  /** Shown if the value is invalid. */
  example?: string
}

export type SettingFields = Readonly<Record<string, SettingField>>

/** Validated settings: a string for each field that is required or has a default. */
export type SettingValues<Fields extends SettingFields> = {
  [Name in keyof Fields]: Fields[Name] extends { required: true } | { default: string }
    ? string
    : string | undefined
}

export type ProviderNeeds = {
  http: ProviderHttp
  clock: Clock
  /** Whether the outcomes of messages are reported to the provider: some want to know it with the message. */
  feedback: boolean
  world: World
}

/** Declares a kind of provider: its settings, its channels and its factory. */
export type ProviderKind = {
  /** Value of `kind` in the configuration. */
  kind: string
  /** Product name of the provider. */
  title: string
  /** All channels that some settings enable; `enabledChannels` lists those that are enabled. */
  channels: readonly Channel[]
  /** Settings that a channel needs, such as the number that calls. */
  channelSettings?: Readonly<Partial<Record<Channel, string>>>
  /** Channels on which the provider writes the text: it gets the code and the language; default: none. */
  textByProvider?: readonly Channel[]
  fields: SettingFields
  /** Exactly one of these settings is required. */
  oneOf?: readonly string[]
  /** Sets of settings that must be given together or not at all. */
  together?: readonly (readonly string[])[]
  /** Finds a fault that only several valid settings together show. */
  findFault?(values: Readonly<Record<string, string>>): SettingFault | undefined
  /** @throws Error if the values are invalid: call `findSettingFaults` first */
  create(values: Readonly<Record<string, string>>, needs: ProviderNeeds): Provider
}

type KindDefinition<Fields extends SettingFields> = Omit<
  ProviderKind,
  'channelSettings' | 'fields' | 'oneOf' | 'together' | 'create'
> & {
  channelSettings?: Readonly<Partial<Record<Channel, keyof Fields & string>>>
  fields: Fields
  oneOf?: readonly (keyof Fields & string)[]
  together?: readonly (readonly (keyof Fields & string)[])[]
  create(values: SettingValues<Fields>, needs: ProviderNeeds): Provider
}

/** Defines a kind of provider; the settings that `create` gets are typed by `fields`. */
export function defineKind<const Fields extends SettingFields>(
  definition: KindDefinition<Fields>,
): ProviderKind {
  const kind: ProviderKind = {
    ...definition,
    create(values, needs) {
      const faults = findSettingFaults(kind, values)
      if (faults.length > 0) throw new Error(`${definition.kind}: the settings were not validated`)
      return definition.create(fillDefaults(definition.fields, values), needs)
    },
  }
  return kind
}

/** Lists the channels that the settings of a provider enable: of those that it names, the ones whose own setting is there. */
export const enabledChannels = (
  kind: Pick<ProviderKind, 'channels' | 'channelSettings' | 'fields'>,
  values: Readonly<Record<string, string>>,
): Channel[] =>
  allChannels.filter((channel) => {
    const { isChosen, lacked } = findChannelNeeds(kind, values, channel)
    return isChosen && lacked === undefined
  })

/** Tells whether settings choose a channel, and names the setting of its own that they lack. */
export function findChannelNeeds(
  { channels, channelSettings = {}, fields }: Pick<ProviderKind, 'channels' | 'channelSettings' | 'fields'>,
  values: Readonly<Record<string, string>>,
  channel: Channel,
): { isChosen: boolean; lacked: string | undefined } {
  const named = values['channels'] ?? fields['channels']?.default
  const chosen: readonly string[] = named === undefined ? channels : named.split(/\s*,\s*/)
  const setting = channelSettings[channel]
  const isLacked = setting !== undefined && values[setting] === undefined
  return { isChosen: chosen.includes(channel), lacked: isLacked ? setting : undefined }
}

type SettingFault = { name: string; fault: string; remedy: string }

/**
 * Validates settings; returns all faults, in the order of the fields. Never includes a value: it may be a
 * secret.
 */
export function findSettingFaults(
  {
    fields,
    oneOf = [],
    together = [],
    findFault: findSharedFault,
  }: Pick<ProviderKind, 'fields' | 'oneOf' | 'together' | 'findFault'>,
  values: Readonly<Record<string, string>>,
): SettingFault[] {
  const faults: SettingFault[] = []
  for (const name of Object.keys(values)) {
    if (Object.hasOwn(fields, name)) continue
    faults.push({ name, fault: 'is not known', remedy: `Known settings: ${Object.keys(fields).join(', ')}.` })
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
      presentNames.length === 0 ? 'is missing' : `conflicts with ${presentNames.slice(1).join(' and ')}`
    faults.push({ name: presentNames[0] ?? first, fault, remedy: `Give exactly one of ${oneOf.join(', ')}.` })
  }
  for (const group of together) {
    const absent = group.filter((name) => values[name] === undefined)
    if (absent.length === group.length) continue
    for (const name of absent) {
      faults.push({ name, fault: 'is missing', remedy: `Give ${group.join(' and ')} together.` })
    }
  }
  const shared = faults.length === 0 ? findSharedFault?.(values) : undefined
  return shared ? [shared] : faults
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
  const urlFault = field.url && findUrlFault(field.url, value)
  if (urlFault) return urlFault
  const { placeholders } = field
  const used = placeholders ? value.matchAll(/\{\{(\w*)\}\}/g).map(([, name = '']) => name) : []
  const unknown = [...used].find((name) => !placeholders?.includes(name))
  if (unknown !== undefined)
    return {
      fault: `has {{${unknown}}}, which is no placeholder`,
      remedy: `Give ${field.description}${example}.`,
    }
  const isSafe = field.multiline || !/\p{Cc}/u.test(value)
  if (!isSafe || field.pattern?.test(value) === false || field.isValid?.(value) === false) {
    return { fault: 'does not look right', remedy: `Give ${field.description}${example}.` }
  }
  return undefined
}

function findUrlFault(kind: 'base' | 'whole', value: string): Omit<SettingFault, 'name'> | undefined {
  if (!isSafeUrl(value) || /\s/.test(value))
    return {
      fault: 'is not an https URL',
      remedy: 'Give an https URL without user name and password; http is allowed on loopback only.',
    }
  if (kind === 'base' ? /[?#]/.test(value) : value.includes('#'))
    return {
      fault: kind === 'base' ? 'has a query or a fragment' : 'has a fragment',
      remedy: 'Give the URL without it.',
    }
  return undefined
}

/** Fills settings that were checked: defaults, and base URLs without trailing slashes. */
export function fillDefaults<Fields extends SettingFields>(
  fields: Fields,
  settings: Readonly<Record<string, string>>,
): SettingValues<Fields> {
  const values = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      field.url === 'base'
        ? (settings[name] ?? field.default)?.replace(/\/+$/, '')
        : (settings[name] ?? field.default),
    ]),
  )
  // Object.fromEntries loses the names; `findSettingFaults` has checked what the type promises.
  return values as SettingValues<Fields>
}

/** Setting for the base URL of the provider's API. `create` gets it without trailing slashes. */
export const baseUrlField = <const Url extends string>(url: Url) =>
  ({ description: 'the base URL of the API', default: url, url: 'base' }) as const

/** Pattern of a UUID (RFC 9562), which some providers use as ids in settings. */
export const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
