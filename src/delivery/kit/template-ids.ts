import { matchLocale } from '../text/locale-choice.ts'

const tag = String.raw`[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*`
/** Template ids in the API model of AWS End User Messaging, for `aws-notify`. */
const id = String.raw`[\w-]{1,256}`
const entry = String.raw`\s*${tag}\s*=\s*${id}\s*`

/** Pattern of a setting that names a provider's template for each language. */
export const templateIdsPattern = new RegExp(`^${entry}(?:,${entry})*$`)

/**
 * Reads `en = ID, de = ID`.
 *
 * @returns a function that picks the template of a message's language; the first one is for all other languages
 */
export function readTemplateIds(setting: string): (locale: string) => string {
  const idByLocale = new Map(
    setting.split(',').map((part) => {
      const [locale = '', templateId = ''] = part.split('=').map((word) => word.trim())
      return [locale, templateId] as const
    }),
  )
  const locales = [...idByLocale.keys()]
  return (locale) => idByLocale.get(matchLocale(locale, locales) ?? locales[0] ?? '') ?? ''
}
