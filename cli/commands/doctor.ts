import { join } from 'node:path'
import type { Command } from 'commander'
import type { LoadedConfig } from '../../src/config/config.ts'
import type { HostInspection } from '../../src/host/host.ts'
import type { Context } from '../context.ts'
import { checksText, fault, ok, type Check } from '../doctor/check.ts'
import { addressChecks, configurationChecks, webhookChecks } from '../doctor/config.ts'
import { deliveryChecks } from '../doctor/delivery.ts'
import { hostChecks } from '../doctor/host.ts'
import { serverChecks } from '../doctor/server.ts'
import { programCheck, terminalCheck } from '../doctor/terminal.ts'
import { CliError, exitCodes } from '../terminal/errors.ts'
import { examples } from '../examples.ts'
import type { HostFlags } from '../host/commands.ts'
import type { Io } from '../terminal/io.ts'
import type { Run } from '../program.ts'
import { isLoopback } from '../session/server-choice.ts'
import { loadServerConfig } from '../host/config.ts'
import { shortPath } from '../terminal/text.ts'
import { version } from '../version.ts'

export function addDoctorCommand(program: Command, run: Run) {
  program
    .command('doctor')
    .description('look for what is wrong: server, configuration, data, login, live sending')
    .option('--data-dir <dir>', "the server's data directory (OTPD_DATA_DIR)")
    .option('--config <file>', "the server's configuration file (OTPD_CONFIG)")
    .addHelpText('after', examples('otpd doctor', 'otpd doctor --json'))
    .action((flags: HostFlags, command: Command) =>
      run(command, async (context) => {
        const { io, output } = context
        const connection = connect(context)
        const host = await inspectHere(flags, connection)
        const checks = [
          ...hereChecks(context, host),
          ...('checks' in connection
            ? connection.checks
            : await serverChecks(context, connection, { isHeld: isHeld(host) })),
          ...(await liveChecks(context, host)),
          programCheck(io),
          terminalCheck(io, output),
        ]
        const isWell = checks.every(({ status }) => status !== 'fault')
        output.answer(JSON.stringify({ data: { checks, ok: isWell } }), () =>
          checksText(checks, output.paint, output.columns()),
        )
        return isWell ? exitCodes.done : exitCodes.negative
      }),
    )
}

/** The way to the server; or why there is none, where what the last login left cannot be read. */
function connect({ connect: open }: Context): ReturnType<Context['connect']> | { checks: Check[] } {
  try {
    return open()
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== exitCodes.notAllowed) throw error
    return { checks: [fault('login', error.message.replace(/\.$/, ''), error.hints[0] ?? 'otpd login')] }
  }
}

type Here = { loaded: LoadedConfig; dataDir: string | null; inspection: HostInspection | null }

const isHeld = (here: Here | null) => here?.inspection?.state === 'open' && here.inspection.isHeld

/**
 * What this machine has of a server; null where it is only the machine of a client. Looks and makes nothing.
 */
async function inspectHere(flags: HostFlags, connection: ReturnType<typeof connect>): Promise<Here | null> {
  const loaded = await loadServerConfig(flags)
  const { config, settings } = loaded
  const place = settings.find(({ setting }) => setting === 'server.dataDir')
  const given = typeof place?.value === 'string' && place.value.startsWith('/') ? place.value : null
  const dataDir = config === null ? given : config.dataDir
  const { inspectHost } = await import('../../src/server/bundle.ts')
  const inspection = dataDir === null ? null : inspectHost(dataDir, config)
  const isServerHere = !('server' in connection) || isLoopback(new URL(connection.server.url).hostname)
  const isConfigured = settings.some(({ origin }) => origin !== 'default')
  const isPresent = inspection !== null && inspection.state !== 'missing'
  return isServerHere || isConfigured || isPresent ? { loaded, dataDir, inspection } : null
}

function hereChecks({ io }: Context, here: Here | null): Check[] {
  if (here === null) return [ok('host', 'the server is elsewhere; its files and settings are not looked at')]
  const { loaded, dataDir, inspection } = here
  const { config } = loaded
  const place = dataDir !== null && {
    dataDir,
    shown: shortPath(dataDir, io.homeDirectory),
    migrate: config?.migrate ?? true,
  }
  return [
    ...configurationChecks(loaded),
    ...(config === null ? [] : [...addressChecks(config), ...webhookChecks(config)]),
    ...(place && inspection ? hostChecks(inspection, place) : []),
  ]
}

/** Only where the configuration is whole: of half of it everything could be said. */
async function liveChecks({ io }: Context, here: Here | null): Promise<Check[]> {
  const config = here?.loaded.config ?? null
  if (here === null || config === null) return []
  const { openProviders } = await import('../../src/server/bundle.ts')
  const opened = openProviders(config, version)
  try {
    const { inspection } = here
    const database = inspection?.state === 'open' ? inspection.database : null
    return deliveryChecks({
      config,
      providers: await opened.list(),
      resting: isHeld(here) && database?.state === 'readable' ? database.resting : [],
      nowMs: io.now(),
      configFile: shortPath(config.configFile ?? usualConfigFile(io), io.homeDirectory),
    })
  } finally {
    opened.close()
  }
}

/** Where the server of this user looks first for a file that may be made there. */
const usualConfigFile = ({ env, homeDirectory }: Io) =>
  process.getuid?.() === 0
    ? '/etc/otpd/otpd.toml'
    : join(env.XDG_CONFIG_HOME || join(homeDirectory, '.config'), 'otpd', 'server.toml')
