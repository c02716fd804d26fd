import { suggest } from '../../shared/suggestion.ts'

/** Placeholders of every message text. `{ttl}` is another name of `{minutes}`. */
export const textPlaceholders = ['{code}', '{minutes}', '{ttl}', '{app}'] as const

/** Characters (UTF-16 units) of a message text, before its placeholders are filled. */
const textCharactersMax = 480

/** Fault of a text, and its remedy. Each is a sentence. */
export type TextFault = [message: string, remedy: string]

/** Normalizes a language tag (BCP 47); undefined if it is not one. */
export function canonicalLocale(tag: string): string | undefined {
  try {
    const locale = new Intl.Locale(new Intl.Locale(tag).toString())
    // Language subtags of more than three letters are reserved, so a whole word is more likely a mistake.
    return locale.language.length <= 3 ? locale.baseName : undefined
  } catch {
    return undefined
  }
}

const languageNames = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** Tells whether a tag names a language that exists: `xx` has the form of one. */
export function hasLanguage(tag: string): boolean {
  const language = /^[A-Za-z]{2,3}(?=-|$)/.exec(tag)?.[0]
  return language !== undefined && languageNames.of(language) !== undefined
}

/** Finds the first fault of a message text. @param placeholders those that it may use, each at most once */
export function findTextFault(text: string, placeholders: readonly string[]): TextFault | undefined {
  if (text.trim() === '') return ['The template must be a string that is not empty.', 'Put it in quotes.']
  if (text.length > textCharactersMax)
    return [
      'The template is too long.',
      `Use at most ${textCharactersMax} characters; 60 fit into one SMS part in any language.`,
    ]
  if (/(?!\n)\p{Cc}/u.test(text))
    return ['The template contains a control character.', 'Write it without tabs or NUL.']
  const unknown = placeholdersOf(text).find((placeholder) => !placeholders.includes(placeholder))
  if (unknown !== undefined)
    return [
      `There is no placeholder ${unknown.slice(0, 40)}.`,
      suggest(unknown, placeholders) ?? `Use ${placeholders.join(', ')}.`,
    ]
  if (/[{}]/.test(text.replaceAll(/\{[^{}]*\}/g, '')))
    return [
      'The template has an unmatched brace.',
      `Braces hold placeholders only: ${placeholders.join(', ')}.`,
    ]
  const repeated = placeholders.find((placeholder) => text.split(placeholder).length > 2)
  if (repeated !== undefined) return [`${repeated} is repeated.`, 'Keep one of them.']
  if (!text.includes('{code}'))
    return ['The placeholder {code} is missing.', 'Write {code} where the code belongs.']
  if (/[A-Za-z0-9}]\{code\}|\{code\}[A-Za-z0-9{]/.test(text))
    return [
      '{code} touches another letter or digit, so phones cannot detect the code.',
      'Put a space or punctuation around it.',
    ]
  return undefined
}

const placeholdersOf = (text: string): string[] => text.match(/\{[^{}]*\}/g) ?? []
