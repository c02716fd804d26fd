import type { FieldDefinition } from '../../src/shared/fields.ts'
import { formatRemaining, printable } from './text.ts'

type SettingValue = string | number | readonly string[] | null

/** Formats the value of a setting for people; null if it is not set. */
export function formatSetting(field: FieldDefinition, value: SettingValue): string | null {
  if (value === null) return null
  if (field.kind === 'seconds') return formatRemaining(Number(value) * 1000)
  return printable([value].flat().join(', '))
}

/**
 * Parses what a person typed; empty text clears a nullable field. Leaves ranges and patterns to the server.
 *
 * @returns undefined if it is not a number, but should be one
 */
export function parseSetting(field: FieldDefinition, text: string): SettingValue | undefined {
  if (text === '' && field.default === null) return null
  if (field.kind === 'text') return text
  if (field.kind === 'countries') return text.split(/[\s,]+/).filter(Boolean)
  return /^\d{1,6}$/.test(text) ? Number(text) : undefined
}
