import { providerKinds } from '../../src/delivery/providers/all-provider-kinds.ts'

/**
 * Builds the README's table of provider kinds, in Markdown. Run this file to print it:
 *
 *     npx bun test/helpers/providers-table.ts | npx prettier --parser markdown
 */
export function providersTable(): string[] {
  const code = (text: string) => `\`${text}\``
  const rows = providerKinds.map(({ kind, title, channels, fields, oneOf = [] }) => {
    const required = Object.entries(fields).filter(([, field]) => field.required)
    const alternatives = oneOf.length > 0 ? [oneOf.map(code).join(' or ')] : []
    const requiredFields = [...required.map(([name]) => code(name)), ...alternatives]
    return `| ${[code(kind), title, channels.join(', '), requiredFields.join(', ')].join(' | ')} |`
  })
  return ['| `kind` | provider | channels | required settings |', '| --- | --- | --- | --- |', ...rows]
}

if (import.meta.main) process.stdout.write(`${providersTable().join('\n')}\n`)
