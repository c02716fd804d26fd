/** Markup that is inserted as it is. */
export type Markup = { readonly markup: string }

type Value = Markup | readonly Markup[] | string | number | false | null | undefined

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escape = (text: string) => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')

function write(value: Value): string {
  if (value === false || value === null || value === undefined) return ''
  if (typeof value === 'string' || typeof value === 'number') return escape(String(value))
  return 'markup' in value ? value.markup : value.map(write).join('')
}

/**
 * Builds markup. Not named `html`: formatters would reflow the text. Values are escaped, but for markup; false, null and
 * undefined are left out.
 */
export const markup = (parts: TemplateStringsArray, ...values: readonly Value[]): Markup => ({
  markup: parts.map((part, index) => part + write(values[index])).join(''),
})
