import type { MessageTemplates } from '../domain/model/message-settings.ts'
import { isTable, type FileEntry } from './toml-file.ts'
import type { Reader } from './reader.ts'
import { suggest } from './suggestion.ts'

const placeholders = ['{code}', '{minutes}', '{app}']
const charactersMax = 480

/**
 * Reads the `[templates.LOCALE]` tables, whose `sms` is the text of messages in that language. It takes the place of the
 * one that otpd brings, or adds a language.
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
          'A template is a table with a text.',
          'Write [templates.LOCALE] and sms = "…" below.',
        )
      continue
    }
    if (key !== 'sms' || deeper.length > 0) {
      reader.report(
        source,
        `A template has no ${[key, ...deeper].join('.')}.`,
        'It has sms, the text of a message.',
      )
      continue
    }
    const locale = canonicalLocale(name)
    if (locale === undefined) {
      const remedy = `Write ${canonicalLocale(name.replaceAll('_', '-')) ?? 'a tag such as de, pt-BR or zh-TW'}.`
      reader.report(source, 'This is not the tag of a language (BCP 47).', remedy)
      continue
    }
    if (templates[locale]) {
      reader.report(source, `There is a template for ${locale} already.`, 'Keep one of the two.')
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

function canonicalLocale(tag: string): string | undefined {
  try {
    const locale = new Intl.Locale(new Intl.Locale(tag).toString())
    // A language of more than three letters is reserved, and a whole word is sooner a slip.
    return locale.language.length <= 3 ? locale.baseName : undefined
  } catch {
    return undefined
  }
}

function findProblem(value: unknown): [message: string, remedy: string] | undefined {
  if (typeof value !== 'string' || value.trim() === '')
    return ['The template must be a text.', 'Put it in quotes.']
  if (value.length > charactersMax)
    return [
      'The template is too long.',
      `Use at most ${charactersMax} characters; 60 fit one part in any language.`,
    ]
  if (/(?!\n)\p{Cc}/u.test(value))
    return ['The template holds a control character.', 'Write it without tabs and NUL.']
  const used = value.match(/\{[^{}]*\}/g) ?? []
  const unknown = used.find((placeholder) => !placeholders.includes(placeholder))
  if (unknown !== undefined)
    return [
      `There is no placeholder ${unknown.slice(0, 40)}.`,
      suggest(unknown, placeholders) ?? `Use ${placeholders.join(', ')}.`,
    ]
  if (/[{}]/.test(value.replaceAll(/\{[^{}]*\}/g, '')))
    return ['A brace stands alone.', `Braces hold placeholders only: ${placeholders.join(', ')}.`]
  const repeated = placeholders.find((placeholder) => value.split(placeholder).length > 2)
  if (repeated !== undefined) return [`${repeated} stands there more than once.`, 'Keep one.']
  if (!value.includes('{code}')) return ['The code is missing.', 'Write {code} where it belongs.']
  if (/[A-Za-z0-9}]\{code\}|\{code\}[A-Za-z0-9{]/.test(value))
    return [
      'The code touches what stands beside it, so that no phone would find it.',
      'Put a space or a mark between.',
    ]
  return undefined
}
