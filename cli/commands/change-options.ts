import { Option, type Command } from 'commander'
import {
  keysOf,
  mapProperties,
  type FieldDefinition,
  type FieldDefinitions,
  type FieldValue,
} from '../../src/shared/fields.ts'
import { usageError } from '../terminal/errors.ts'
import { parseSetting } from '../terminal/setting-text.ts'

type ChangeOption<V> = {
  /** As Commander takes it: `-n, --name <name>`. */
  flags: string
  help: string
  parse(text: string): V
}

/** Options of an update command by the property of the `PATCH` body that they set; the compiler wants all of them. */
export type ChangeOptions<Body> = { [K in keyof Body]-?: ChangeOption<Exclude<Body[K], undefined>> }

/** Creates an option that takes the text as it is. */
export const textOption = (flags: string, help: string) => ({ flags, help, parse: (text: string) => text })

export const nameOption = textOption('-n, --name <name>', 'new name, 1 to 80 characters')

/** Creates an option whose empty value removes the property. */
export const nullableOption = (flags: string, help: string) => ({
  flags,
  help: `${help}; '' removes it`,
  parse: (text: string) => text || null,
})

/** Creates the options of a resource's settings. */
export const settingOptions = <F extends FieldDefinitions>(fields: F) =>
  mapProperties<F, { [K in keyof F]: ChangeOption<FieldValue<F[K]>> }>(
    fields,
    // `parseSetting` returns a value of the field's type.
    (field) => settingOption(field) as ChangeOption<FieldValue<F[keyof F & string]>>,
  )

function settingOption(field: FieldDefinition): ChangeOption<string | number | null> {
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
export function addChangeOptions<Body>(command: Command, options: ChangeOptions<Body>): Command {
  for (const key of keysOf(options)) command.option(options[key].flags, options[key].help)
  return command
}

/**
 * Reads the `PATCH` body from the options that were passed.
 *
 * @throws a usage error if there are none
 */
export function readChanges<Body>(command: Command, options: ChangeOptions<Body>): Partial<Body> {
  const changes: Partial<Body> = {}
  for (const key of keysOf(options)) {
    const { flags, parse } = options[key]
    const text: unknown = command.getOptionValue(new Option(flags).attributeName())
    if (typeof text === 'string') changes[key] = parse(text)
  }
  if (Object.keys(changes).length > 0) return changes
  const names = keysOf(options).map((key) => longFlag(options[key].flags))
  throw usageError('There is nothing to change.', `Pass ${names.slice(0, -1).join(', ')} or ${names.at(-1)}.`)
}

const longFlag = (flags: string) => new Option(flags).long ?? flags
