/** Definition of a field that developers set with `PATCH`. All layers derive from it. */
export type FieldDefinition = (
  | {
      kind: 'text'
      /** Regular expression that the whole text must match. */
      pattern: string
      /** Stricter check of requests than the pattern. Responses are not checked by it, since older values stay. */
      format?: 'language-tag' | 'country'
      /** Initial value. Null makes the field nullable: `PATCH` then takes null to clear it. */
      default: string | null
    }
  | {
      kind: 'seconds'
      minimum: number
      maximum: number
      /** As for text. */
      default: number | null
    }
  | {
      /** ISO 3166-1 alpha-2 codes, and 001 for numbers of no country; at least one. */
      kind: 'countries'
      /** As for text. */
      default: null
    }
) & {
  /** Message for an invalid value. */
  errorText: string
  /** Description in the OpenAPI document. */
  description?: string
  /** Whether the message renderer needs the field. */
  isMessageSetting: boolean
  terminal: {
    /** Option of the update command with its argument, such as `--locale <tag>`. */
    option: `--${string} <${string}>`
    /** Description of the option. */
    help: string
    /** Label in the output of commands; at most 13 characters, so that lines fit into 80 columns. */
    label: string
    /** Label in the console. */
    consoleLabel: string
  }
}

export type FieldDefinitions = Readonly<Record<string, FieldDefinition>>

/** Type of a field's value, with null if the field is nullable. */
export type FieldValue<F extends FieldDefinition> =
  KindValues[F['kind']] | (F['default'] extends null ? null : never)

type KindValues = { text: string; seconds: number; countries: readonly string[] }

/** Values of all fields by name. */
export type FieldValues<F extends FieldDefinitions> = { -readonly [K in keyof F]: FieldValue<F[K]> }

/** Names of the fields whose definition is a `P`. */
type FieldName<F extends FieldDefinitions, P> = {
  [K in keyof F & string]: F[K] extends P ? K : never
}[keyof F & string]

type NullableName<F extends FieldDefinitions> = FieldName<F, { default: null }>
type MessageSettingName<F extends FieldDefinitions> = FieldName<F, { isMessageSetting: true }>

// The assertions below restore the key types that `Object.keys`, `filter` and `Object.fromEntries` lose.

/** Lists the keys of an object that has only the properties of its type. */
export const keysOf = <T extends object>(object: T) => Object.keys(object) as (keyof T & string)[]

/** Lists the names of the nullable fields. */
export const nullableNames = <F extends FieldDefinitions>(fields: F) =>
  keysOf(fields).filter((name) => fields[name]?.default === null) as NullableName<F>[]

/** Lists the names of the fields that are never null. */
export const requiredNames = <F extends FieldDefinitions>(fields: F) =>
  keysOf(fields).filter((name) => fields[name]?.default !== null) as Exclude<
    keyof F & string,
    NullableName<F>
  >[]

/** Lists the names of the fields that the message renderer needs. */
export const messageSettingNames = <F extends FieldDefinitions>(fields: F) =>
  keysOf(fields).filter((name) => fields[name]?.isMessageSetting) as MessageSettingName<F>[]

/** Copies the named properties, in the order of the names. */
export const pick = <T extends object, K extends keyof T>(source: T, keys: readonly K[]) =>
  Object.fromEntries(keys.map((key) => [key, source[key]])) as Pick<T, K>

/** Maps every property. @returns an object with the same keys; the caller names its type */
export const mapProperties = <T extends object, R extends Record<keyof T, unknown>>(
  source: T,
  map: (value: T[keyof T & string], key: keyof T & string) => R[keyof T & string],
) => Object.fromEntries(keysOf(source).map((key) => [key, map(source[key], key)])) as R
