import type { Template } from '../../client/resources.ts'
import { required, type Dialog, type DialogNeeds } from '../console-context.ts'

/** A text of an application's template. */
export type TemplateRow = { template: Template; locale: string; text: string }

/** Writes a text of a template: a new one, or that of a row. An empty text removes it, and the last one its template. */
export const templateDialog = (
  { api, toast }: DialogNeeds,
  appId: string,
  templates: readonly Template[],
  row?: TemplateRow,
): Dialog => ({
  kind: 'form',
  title: row ? 'Edit text' : 'New text',
  lines: [
    'Placeholders: {code}, {app}, {ttl} (minutes), and for payments {amount} and {payee}.',
    ...(row ? ['An empty text removes this language.'] : []),
  ],
  fields: [
    { name: 'name', label: 'template', initial: row?.template.name ?? 'login', check: required },
    { name: 'locale', label: 'language', initial: row?.locale ?? 'en', check: required },
    { name: 'text', label: 'text', initial: row ? oneLine(row.text) : '{code} is your {app} code.' },
  ],
  verb: 'save',
  async submit(values) {
    const name = values['name'] ?? ''
    const locale = values['locale'] ?? ''
    const text = (values['text'] ?? '').replaceAll(String.raw`\n`, '\n').trim()
    const others = Object.entries(templates.find((one) => one.name === name)?.texts ?? {}).filter(
      ([tag]) => tag !== locale,
    )
    const texts = Object.fromEntries(text === '' ? others : [...others, [locale, text]])
    const params = { id: appId, name }
    const path = '/v1/applications/:id/templates/:name'
    if (Object.keys(texts).length === 0) {
      await api.asDeveloper('DELETE', path, { params })
      toast('template deleted', 'good')
      return
    }
    const { data } = await api.asDeveloper('PUT', path, { params, body: { texts } })
    const parts = Math.max(...data.sizes.map((size) => size.parts))
    toast(parts > 1 ? `saved; up to ${parts} SMS parts, each charged` : 'template saved', 'good')
  },
})

/** Shows line breaks as people write them in a form. */
export const oneLine = (text: string) => text.replaceAll('\n', String.raw`\n`)
