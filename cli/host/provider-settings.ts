import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { ProviderKind } from '../../src/server/bundle.ts'
import type { Context } from '../context.ts'
import { usageError } from '../terminal/errors.ts'
import { ask } from '../terminal/prompt.ts'
import { printable } from '../terminal/text.ts'
import type { NewProvider } from './provider-table.ts'

/** Settings that every kind has, which are true or false. */
const switches = ['failoverOnBlock', 'feedback']

/** Values by key as they go into the file, such as `from` and `authTokenEnv`. */
type GivenSettings = ReadonlyMap<string, string>

/**
 * Parses `--set key=value`.
 *
 * @throws usage error for a key that the kind does not have, and for a secret, which the shell would keep in its history
 */
export function parseSettings(kind: ProviderKind, settings: readonly string[]): GivenSettings {
  const keys = new Map<string, string>()
  for (const setting of settings) {
    const separator = setting.indexOf('=')
    const key = setting.slice(0, Math.max(0, separator))
    const field = fieldOf(kind, key)
    const known = [...Object.keys(kind.fields), ...switches].join(', ')
    if (separator < 1 || (field === undefined && !switches.includes(key)))
      throw usageError(
        `--set ${printable(key || setting)} is no setting of ${kind.kind}.`,
        `Write --set setting=value with one of ${known}.`,
      )
    if (keys.has(key)) throw usageError(`--set ${key} is given twice.`)
    if (field === key && kind.fields[key]?.secret)
      throw usageError(
        `${key} is a secret, which the history of your shell would keep.`,
        `Use --set ${key}Env=VARIABLE or --set ${key}File=PATH, or leave it out and type it.`,
      )
    const value = setting.slice(separator + 1)
    if (switches.includes(key) && value !== 'true' && value !== 'false')
      throw usageError(`--set ${key} must be true or false.`)
    keys.set(key, value)
  }
  return keys
}

/** Returns the field of a key; `authTokenEnv` is of `authToken`, unless the kind has a field of exactly that name. */
function fieldOf({ fields }: ProviderKind, key: string): string | undefined {
  if (Object.hasOwn(fields, key)) return key
  const name = key.replace(/(Env|File)$/, '')
  return name !== key && Object.hasOwn(fields, name) ? name : undefined
}

type Place = {
  file: string
  name: string
  /** False to name the file of a secret without asking for it. */
  asksSecrets: boolean
  /** Whether variables may be missing in this shell. */
  mayMissVariables: boolean
}

/**
 * Completes the settings of a provider by asking for the required ones.
 *
 * @throws usage error naming the flag when prompting is not possible, and for invalid values
 */
export async function answerSettings(
  context: Context,
  kind: ProviderKind,
  keys: GivenSettings,
  place: Place,
): Promise<Omit<NewProvider, 'name' | 'kind'>> {
  const { findSettingFaults } = await import('../../src/server/bundle.ts')
  const lines = new Map<string, string | boolean>()
  const values: Record<string, string> = {}
  const unread = new Set<string>()
  const secretFiles: Array<{ path: string; secret: string }> = []
  for (const [key, value] of keys) {
    const field = fieldOf(kind, key)
    lines.set(key, switches.includes(key) ? value === 'true' : value)
    if (field === undefined) continue
    if (values[field] !== undefined || unread.has(field)) throw usageError(`${field} is given twice.`)
    const read = field === key ? value : readReference(context, key, value, place)
    if (read === undefined) unread.add(field)
    else values[field] = read
  }
  const has = (field: string) => values[field] !== undefined || unread.has(field)
  const { oneOf = [] } = kind
  const isUndecided = oneOf.length > 0 && !oneOf.some(has)
  const missing = Object.keys(kind.fields).filter((name) => kind.fields[name]?.required && !has(name))
  if (!context.mayAsk) requireAnswers(kind, missing, isUndecided, place)

  async function askField(name: string): Promise<void> {
    const { description, secret = false, example } = kind.fields[name] ?? { description: name }
    if (secret && !place.asksSecrets) {
      lines.set(`${name}File`, secretPath(place, name))
      unread.add(name)
      return
    }
    const faultOf = (answer: string) => {
      const field = kind.fields[name]
      const [fault] = field ? findSettingFaults({ fields: { [name]: field } }, { [name]: answer }) : []
      return fault ? `${name} ${fault.fault}. ${fault.remedy}` : null
    }
    values[name] = await ask(context, {
      label: name,
      flag: flagOf(kind, name),
      hint: example === undefined ? description : `${description}, such as ${example}`,
      secret,
      validate: faultOf,
    })
    if (!secret) lines.set(name, values[name])
    else {
      const path = secretPath(place, name)
      lines.set(`${name}File`, path)
      secretFiles.push({ path, secret: values[name] })
    }
  }

  for (const name of missing) await askField(name)
  if (isUndecided) {
    const choice = await ask(context, {
      label: oneOf.join(' or '),
      flag: oneOf.map((name) => flagOf(kind, name)).join(' or '),
      hint: 'which of them you have',
      validate: (answer) => (oneOf.includes(answer) ? null : `Type one of ${oneOf.join(', ')}.`),
    })
    await askField(choice)
  }
  const faults = findSettingFaults(kind, values).filter(
    ({ name }) => !unread.has(name) && !oneOf.some((one) => unread.has(one)),
  )
  if (faults.length > 0)
    throw usageError(
      `The settings of ${kind.kind} are invalid.`,
      faults.map(({ name, fault, remedy }) => `${name} ${fault}. ${remedy}`).join('\n'),
    )
  return { lines, values, secretFiles }
}

const flagOf = ({ fields }: ProviderKind, name: string) =>
  fields[name]?.secret ? `--set ${name}Env=VARIABLE` : `--set ${name}=VALUE`

/** @throws usage error that names all settings that would be asked for, as there is no terminal to prompt on */
function requireAnswers(
  kind: ProviderKind,
  missing: readonly string[],
  isUndecided: boolean,
  { asksSecrets }: Place,
): void {
  const required = missing.filter((name) => asksSecrets || !kind.fields[name]?.secret)
  const flags = required.map((name) => flagOf(kind, name))
  if (isUndecided) flags.push((kind.oneOf ?? []).map((name) => flagOf(kind, name)).join(' or '))
  if (flags.length === 0) return
  throw usageError(
    `${kind.kind} has settings that are missing, and there is no terminal to prompt on.`,
    `Pass ${flags.join(' ')}. A secret can also be in a file: nameFile=PATH.`,
  )
}

const secretPath = ({ file, name }: Place, field: string) =>
  join(dirname(file), 'secrets', `${name}-${field}`)

/** Reads what `authTokenEnv` or `authTokenFile` names. @returns undefined if it is not there and need not be */
function readReference(
  { io }: Context,
  key: string,
  reference: string,
  { file, mayMissVariables }: Place,
): string | undefined {
  if (key.endsWith('Env')) {
    const value = io.env[reference]
    if (value || mayMissVariables) return value || undefined
    throw usageError(
      `The environment variable ${printable(reference)} is empty or not set here, so the provider cannot be tried.`,
      'Set it for this command, or pass --skip-check.',
    )
  }
  try {
    return readFileSync(resolve(dirname(file), reference), 'utf8').replace(/\r?\n$/, '')
  } catch {
    if (mayMissVariables) return undefined
    throw usageError(
      `The file ${printable(reference)} cannot be read.`,
      'Correct the path or its permissions.',
    )
  }
}
