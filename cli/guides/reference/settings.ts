import { settingList } from '../../../src/config/config.ts'

/** Builds the table of all settings of the server: variable, flag and key of each, then its meaning and default. */
export function settingTable(): string {
  const rows = settingList.map(({ variable, flag, name, notInFile, description, default: standard }) => {
    const names = [variable, flag, notInFile ? undefined : name]
    const codes = names.flatMap((text) => (text === undefined ? [] : [`\`${text}\``]))
    return `| ${codes.join(' ')} | ${description} Default: ${standard}. |`
  })
  return ['| variable, flag, key in the file | meaning |', '| --- | --- |', ...rows].join('\n')
}
