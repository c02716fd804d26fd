import type { CliCommand } from './command.ts'
import type { Flags, LoadedConfig, SettingValue } from '../../src/config/config.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import { addConfigFlags, loadServerConfig, requireConfig } from '../host/config.ts'
import { listEdits, findRunning, noteRunning } from '../host/running.ts'
import { kept, optional } from '../terminal/table.ts'
import { printable } from '../terminal/text.ts'

/** Registers the commands for the server's configuration. */
export function addConfigCommands(program: CliCommand) {
  const config = program.command('config').description("the server's configuration on this machine")

  addConfigFlags(
    config
      .command('show')
      .description('show every setting of the running server, or of the next start, with its source'),
  )
    .examples('otpd config show', 'otpd config show --listen 127.0.0.1:9090 --json')
    .run(async ({ io, output }, flags: Flags) => {
      const loaded = await loadServerConfig(io, flags)
      const running = await findRunning(loaded, (reason) =>
        output.note(`These are the settings of the next start. What nodes run with is unknown: ${reason}`),
      )
      const settings = running?.settings ?? loaded.settings
      const { settingRows } = await import('../../src/server/bundle.ts')
      output.printData(settings, () =>
        output.formatTable(
          [kept('SETTING'), 'VALUE', optional('SOURCE')],
          settingRows(settings).map((row) => row.map(printable)),
        ),
      )
      if (running !== null) noteRunning(output, 'settings', running)
      for (const { names, remedy } of running === null ? [] : listEdits(running))
        output.note(`Changed in the file since the server started; ${remedy}: ${names}`)
      for (const { setting, here } of running?.differences ?? [])
        output.note(`This shell has another ${setting}: ${printable(here)}`)
      requireChecked(loaded)
    })

  addConfigFlags(config.command('check').description('check that the configuration is valid'))
    .option(
      '--for <version>',
      'name the settings that this earlier version refuses, before you go back to it',
    )
    .examples('otpd config check', 'otpd config check --for 0.1.0')
    .run(async ({ io, output }, flags: Flags & { for?: string }) => {
      const loaded = await loadServerConfig(io, flags, 'check')
      for (const { source, message, remedy } of loaded.warnings)
        output.warn(`${source}: ${message} ${remedy}`)
      const { configFile } = requireChecked(loaded)
      if (flags.for !== undefined) await requireKnownSettings(loaded.settings, flags.for)
      const result = { valid: true, configFile }
      output.printData(result, () =>
        output.done(`The configuration is valid (${configFile ?? 'no file; environment and defaults'})`),
      )
    })
}

/** Returns the configuration if it is valid. @throws CliError a failed check, or a usage error if only flags are wrong */
function requireChecked(loaded: LoadedConfig) {
  const areFlags = loaded.problems.every(({ source }) => source.startsWith('--'))
  return requireConfig(loaded, areFlags ? exitCodes.usage : exitCodes.negative)
}

/** @throws CliError settings are set that an earlier version refuses */
async function requireKnownSettings(settings: readonly SettingValue[], release: string): Promise<void> {
  if (!/^\d+\.\d+\.\d+$/.test(release)) throw usageError('--for must be a version like 0.1.0.')
  const { listNewerSettings } = await import('../../src/server/bundle.ts')
  const newer = listNewerSettings(settings, release)
  if (newer.length === 0) return
  throw new CliError(
    exitCodes.negative,
    'CONFIG_TOO_NEW',
    `otpd ${release} refuses settings that are set here.`,
    {
      hints: newer.map(
        ({ setting, origin, since }) => `${origin}: ${setting} is of ${since}; remove it to go back.`,
      ),
    },
  )
}
