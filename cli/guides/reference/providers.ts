import { providerKinds } from '../../../src/delivery/providers/all-provider-kinds.ts'

/** Builds the table of all kinds of providers. */
export function providerTable(): string {
  const code = (text: string) => `\`${text}\``
  const rows = providerKinds.map(({ kind, title, channels, textByProvider = [], fields, oneOf = [] }) => {
    const required = Object.entries(fields).filter(([, field]) => field.required)
    const alternatives = oneOf.length > 0 ? [oneOf.map(code).join(' or ')] : []
    const requiredFields = [...required.map(([name]) => code(name)), ...alternatives]
    const marked = channels.map((channel) => (textByProvider.includes(channel) ? `${channel} *` : channel))
    return `| ${[code(kind), title, marked.join(', '), requiredFields.join(', ')].join(' | ')} |`
  })
  return ['| `kind` | provider | channels | required settings |', '| --- | --- | --- | --- |', ...rows].join(
    '\n',
  )
}
