import type { MessageTemplates } from '../domain/model/message-settings.ts'
import { isTable, type FileEntry } from './toml-file.ts'
import type { Reader } from './reader.ts'
import { suggest } from '../shared/suggestion.ts'

const placeholders = ['{code}', '{minutes}', '{app}']
const charactersMax = 480

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

/** Normalizes a language tag; undefined if it is not one. */
function canonicalLocale(tag: string): string | undefined {
  try {
    const locale = new Intl.Locale(new Intl.Locale(tag).toString())
    // Language subtags of more than three letters are reserved, so a whole word is more likely a mistake.
    return locale.language.length <= 3 ? locale.baseName : undefined
  } catch {
    return undefined
  }
}

function findProblem(value: unknown): [message: string, remedy: string] | undefined {
  if (typeof value !== 'string' || value.trim() === '')
    return ['The template must be a string that is not empty.', 'Put it in quotes.']
  if (value.length > charactersMax)
    return [
      'The template is too long.',
      `Use at most ${charactersMax} characters; 60 fit into one SMS part in any language.`,
    ]
  if (/(?!\n)\p{Cc}/u.test(value))
    return ['The template contains a control character.', 'Write it without tabs or NUL.']
  const used = value.match(/\{[^{}]*\}/g) ?? []
  const unknown = used.find((placeholder) => !placeholders.includes(placeholder))
  if (unknown !== undefined)
    return [
      `There is no placeholder ${unknown.slice(0, 40)}.`,
      suggest(unknown, placeholders) ?? `Use ${placeholders.join(', ')}.`,
    ]
  if (/[{}]/.test(value.replaceAll(/\{[^{}]*\}/g, '')))
    return [
      'The template has an unmatched brace.',
      `Braces hold placeholders only: ${placeholders.join(', ')}.`,
    ]
  const repeated = placeholders.find((placeholder) => value.split(placeholder).length > 2)
  if (repeated !== undefined) return [`${repeated} is repeated.`, 'Keep one of them.']
  if (!value.includes('{code}'))
    return ['The placeholder {code} is missing.', 'Write {code} where the code belongs.']
  if (/[A-Za-z0-9}]\{code\}|\{code\}[A-Za-z0-9{]/.test(value))
    return [
      '{code} touches another letter or digit, so phones cannot detect the code.',
      'Put a space or punctuation around it.',
    ]
  return undefined
}
