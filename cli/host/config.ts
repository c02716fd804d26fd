import type { Command } from 'commander'
import type { Config, Flags, LoadedConfig } from '../../src/config/config.ts'
import { CliError, type ExitCode } from '../terminal/errors.ts'

/** The settings that `serve`, `config` and the host commands take as flags. */
export const addConfigFlags = (command: Command) =>
  command
    .option('--config <file>', 'the configuration file (OTPD_CONFIG)')
    .option(
      '--listen <host:port>',
      'where to listen; port 0 takes any free one (OTPD_LISTEN; 127.0.0.1:8080)',
    )
    .option('--data-dir <dir>', 'database, master key and backups (OTPD_DATA_DIR)')
    .option('--public-url <url>', 'the address under which clients reach the server (OTPD_PUBLIC_URL)')
    .option('--dev', 'keep everything in a temporary folder (OTPD_DEV)')
    .option('--no-migrate', 'refuse an older database instead of migrating it')
    .option('--log-format <format>', 'text or json (OTPD_LOG_FORMAT; text)')
    .option('--log-level <level>', 'debug, info, warn or error (OTPD_LOG_LEVEL; info)')

/** Reads the server's configuration, as the server does. The only other part of `src` that commands reach. */
export async function loadServerConfig(flags: Flags): Promise<LoadedConfig> {
  const { loadConfig, processInput } = await import('../../src/server/bundle.ts')
  const { config, listen, dataDir, publicUrl, dev, migrate, logFormat, logLevel } = flags
  return loadConfig(processInput({ config, listen, dataDir, publicUrl, dev, migrate, logFormat, logLevel }))
}

/** The configuration, or an error with every problem in it. */
export function requireConfig({ config, problems }: LoadedConfig, exitCode: ExitCode): Config {
  if (config !== null) return config
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`
  throw new CliError(exitCode, 'CONFIG_INVALID', `The configuration has ${count}.`, {
    hints: problems.flatMap(({ source, message, remedy }) => [`${source}: ${message}`, `  ${remedy}`]),
  })
}
