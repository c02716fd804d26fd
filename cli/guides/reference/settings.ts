import { settingList } from '../../../src/config/config.ts'

/** Builds the table of all settings of the server. */
export function settingTable(): string {
  const code = (text: string | undefined) => (text === undefined ? '' : `\`${text}\``)
  const rows = settingList.map((setting) => {
    const key = setting.notInFile ? '' : code(setting.name)
    const cells = [code(setting.variable), code(setting.flag), key, setting.default, setting.description]
    return `| ${cells.join(' | ')} |`
  })
  return [
    '| Variable | Flag | In the file | Default | Meaning |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}
