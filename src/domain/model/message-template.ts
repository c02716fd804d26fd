import { findTextFault, textPlaceholders, type TextFault } from './template-text.ts'
import { directionMarks, links, longNumber, shownText } from './untrusted-text.ts'

/** A text of a template, and its canonical locale. */
export type TemplateText = { locale: string; text: string }

/** Message texts that a developer has written for a purpose of an application, such as `login` or `payment`. */
export type MessageTemplate = {
  name: string
  /** In the order in which they were written; at least one, and one for each locale. */
  texts: readonly TemplateText[]
  createdAt: number
  updatedAt: number
}

/** Size of the message of a text as an SMS, with the longest values. */
export type TextSize = {
  encoding: 'GSM-7' | 'UCS-2'
  /** Septets, or 16-bit units. */
  units: number
  parts: number
  /** Capacity of `parts` parts, in units. */
  unitsMax: number
  /** Characters outside the GSM alphabet, without repeats. */
  foreign: string[]
}

export const templateNamePattern = '^[a-z0-9][a-z0-9_-]{0,31}$'
/** Templates of an application. */
export const templatesMax = 20
/** Texts of a template: one for each language of the built-in texts, and some more. */
export const templateTextsMax = 40

/** Values that a send gives for a payment. Their order is that in which they are bound into the code. */
export const variableNames = ['amount', 'payee'] as const

export type VariableName = (typeof variableNames)[number]

const toPlaceholder = (name: VariableName) => `{${name}}`

const templatePlaceholders = [...textPlaceholders, ...variableNames.map(toPlaceholder)]

/** Lists the variables that a text shows: both for a payment, else none. */
export const variablesOf = (text: string): VariableName[] =>
  variableNames.filter((name) => text.includes(toPlaceholder(name)))

/**
 * Finds the first fault of a text of a template.
 *
 * Its readers trust the sender of the message, not the developer who wrote it, so that it may not look like a link or
 * show a number that can be taken for the code.
 */
export function findTemplateFault(text: string): TextFault | undefined {
  const fault = findTextFault(text, templatePlaceholders)
  if (fault) return fault
  const missing = variableNames.find((name) => !variablesOf(text).includes(name))
  if (missing !== undefined && variablesOf(text).length > 0)
    return [
      `The placeholder ${toPlaceholder(missing)} is missing.`,
      'The message of a payment must show its amount and its payee.',
    ]
  if (directionMarks.test(text))
    return ['The template contains an invisible mark of direction.', 'otpd adds those that a text needs.']
  // Persian words and emoji need some of these characters, so they are not refused.
  const shown = shownText(text)
  if (links.test(shown))
    return [
      'The template contains what phones show as a link.',
      'Write it without links, and with a space after each full stop.',
    ]
  if (longNumber.test(shown))
    return [
      'The template contains five or more digits in a row, which can be taken for the code.',
      'Write it without such a number.',
    ]
  return undefined
}
