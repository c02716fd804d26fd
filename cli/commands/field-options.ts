import { Option } from 'commander'
import type { CliCommand } from './command.ts'
import {
  keysOf,
  mapProperties,
  type FieldDefinition,
  type FieldDefinitions,
  type FieldValue,
} from '../../src/shared/fields.ts'
import { usageError } from '../terminal/errors.ts'
import { collect } from '../terminal/pairs.ts'
import { parseSetting } from '../terminal/setting-text.ts'

type FieldOption<V> = {
  /** As Commander takes it: `-n, --name <name>`. */
  flags: string
  help: string
  choices?: readonly string[]
} & (
  | { isRepeatable?: false; parse(text: string): V }
  /** The option may be given several times. */
  | { isRepeatable: true; parse(texts: readonly string[]): V }
)

/** Values of the options that were passed, as the body of a command gets them. */
export type OptionValues = Readonly<Record<string, unknown>>

/** Options of a command by the property of the request body that they set; the compiler wants all of them. */
export type FieldOptions<Body> = { [K in keyof Body]-?: FieldOption<Exclude<Body[K], undefined>> }

/** Creates an option that takes the text as it is. */
export const textOption = (flags: string, help: string) => ({ flags, help, parse: (text: string) => text })

/** Creates an option with a closed list of values. */
export const choiceOption = <const T extends string>(flags: string, help: string, choices: readonly T[]) => ({
  flags,
  help: `${help}: ${choices.join(', ')}`,
  choices,
  // Commander has checked it.
  parse: (text: string) => text as T,
})

export const nameOption = textOption('-n, --name <name>', 'new name, 1 to 80 characters')

/** Creates an option whose empty value removes the property. */
export const nullableOption = (flags: string, help: string) => ({
  flags,
  help: `${help}; '' removes it`,
  parse: (text: string) => text || null,
})

/** Creates an option for a whole number; its range is left to the server. */
export const numberOption = (flags: string, help: string) => ({
  flags,
  help,
  parse(text: string) {
    if (!/^\d{1,9}$/.test(text)) throw usageError(`${longFlag(flags)} must be a whole number.`)
    return Number(text)
  },
})

/** Creates the options of a resource's settings. */
export const settingOptions = <F extends FieldDefinitions>(fields: F) =>
  mapProperties<F, { [K in keyof F]: FieldOption<FieldValue<F[K]>> }>(
    fields,
    // `parseSetting` returns a value of the field's type.
    (field) => settingOption(field) as FieldOption<FieldValue<F[keyof F & string]>>,
  )

function settingOption(field: FieldDefinition): FieldOption<ReturnType<typeof parseSetting>> {
  const { option: flags, help } = field.terminal
  return {
    flags,
    help: field.default === null ? `${help}; '' removes it` : help,
    parse(text) {
      const value = parseSetting(field, text)
      if (value === undefined && field.kind === 'seconds')
        throw usageError(
          `${longFlag(flags)} must be a number of seconds from ${field.minimum} to ${field.maximum}.`,
        )
      return value ?? null
    },
  }
}

/** Registers the options on a command. */
export function addFieldOptions<Body>(command: CliCommand, options: FieldOptions<Body>): CliCommand {
  for (const key of keysOf(options)) {
    const { flags, help, choices, isRepeatable } = options[key]
    const option = new Option(flags, help)
    if (choices) option.choices([...choices])
    if (isRepeatable) option.argParser(collect)
    command.addOption(option)
  }
  return command
}

/** Reads the properties of a request body from the options that were passed. */
export function readFields<Body>(values: OptionValues, options: FieldOptions<Body>): Partial<Body> {
  const fields: Partial<Body> = {}
  for (const key of keysOf(options)) {
    const option = options[key]
    const value = values[new Option(option.flags).attributeName()]
    if (option.isRepeatable && Array.isArray(value)) fields[key] = option.parse(value.map(String))
    if (!option.isRepeatable && typeof value === 'string') fields[key] = option.parse(value)
  }
  return fields
}

/**
 * Reads the `PATCH` body from the options that were passed.
 *
 * @throws a usage error if there are none
 */
export function readChanges<Body>(values: OptionValues, options: FieldOptions<Body>): Partial<Body> {
  const changes = readFields(values, options)
  if (Object.keys(changes).length > 0) return changes
  const names = keysOf(options).map((key) => longFlag(options[key].flags))
  throw usageError('There is nothing to change.', `Pass ${names.slice(0, -1).join(', ')} or ${names.at(-1)}.`)
}

const longFlag = (flags: string) => new Option(flags).long ?? flags
