import type { MessageTemplates } from '../domain/model/message-settings.ts'
import { isTable, type FileEntry } from './toml-file.ts'
import type { Reader } from './reader.ts'
import {
  canonicalLocale,
  findTextFault,
  textPlaceholders,
  type TextFault,
} from '../domain/model/template-text.ts'

/**
 * Reads the `[templates.LOCALE]` tables, whose `sms` is the message text in that language. A text replaces the built-in
 * one or adds a language.
 */
export function readTemplates(reader: Reader, entries: readonly FileEntry[]): MessageTemplates {
  const templates: Record<string, { sms: string }> = {}
  for (const entry of entries) {
    const [section, name, key, ...deeper] = entry.path
    if (section !== 'templates') continue
    const source = reader.formatSource(entry)
    if (name === undefined || key === undefined) {
      if (!isTable(entry.value) || name !== undefined)
        reader.report(
          source,
          'A template must be a table.',
          'Write [templates.LOCALE] and sms = "…" below it.',
        )
      continue
    }
    if (key !== 'sms' || deeper.length > 0) {
      reader.report(
        source,
        `Templates have no setting ${[key, ...deeper].join('.')}.`,
        'It has sms only, the message text.',
      )
      continue
    }
    const locale = canonicalLocale(name)
    if (locale === undefined) {
      const remedy = `Write ${canonicalLocale(name.replaceAll('_', '-')) ?? 'a tag such as de, pt-BR or zh-TW'}.`
      reader.report(source, 'This is not a language tag (BCP 47).', remedy)
      continue
    }
    if (templates[locale]) {
      reader.report(source, `There is already a template for ${locale}.`, 'Keep one of the two.')
      continue
    }
    const problem = findProblem(entry.value)
    if (problem) reader.report(source, ...problem)
    if (problem || typeof entry.value !== 'string') continue
    templates[locale] = { sms: entry.value.trim() }
    reader.values.push({ setting: `templates.${locale}.sms`, value: entry.value.trim(), origin: source })
  }
  return templates
}

function findProblem(value: unknown): TextFault | undefined {
  if (typeof value !== 'string')
    return ['The template must be a string that is not empty.', 'Put it in quotes.']
  return findTextFault(value, textPlaceholders)
}
