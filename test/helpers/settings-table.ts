import { settingList } from '../../src/config/config.ts'

/**
 * Builds the README's table of settings, in Markdown. Run this file to print it:
 *
 *     npx bun test/helpers/settings-table.ts | npx prettier --parser markdown
 */
export function settingsTable(): string[] {
  const code = (text: string | undefined) => (text === undefined ? '' : `\`${text}\``)
  const rows = settingList.map((setting) => {
    const key = setting.notInFile ? '' : code(setting.name)
    const cells = [code(setting.variable), code(setting.flag), key, setting.default, setting.description]
    return `| ${cells.join(' | ')} |`
  })
  return ['| Variable | Flag | In the file | Default | Meaning |', '| --- | --- | --- | --- | --- |', ...rows]
}

if (import.meta.main) process.stdout.write(`${settingsTable().join('\n')}\n`)
