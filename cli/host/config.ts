import type { Command } from 'commander'
import type { Config, ConfigUse, DatabaseConfig, Flags, LoadedConfig } from '../../src/config/config.ts'
import type { Io } from '../terminal/io.ts'
import { CliError, exitCodes, type ExitCode } from '../terminal/errors.ts'
import { collect } from '../terminal/pairs.ts'
import { firstProblems } from '../terminal/problems.ts'

/** Adds the settings that `serve` and `config` take as flags. */
export const addConfigFlags = <C extends Command>(command: C): C =>
  command
    .option('--config <file>', 'configuration file (OTPD_CONFIG)')
    .option(
      '--listen <host:port>',
      'address to listen on; port 0 picks a free port (OTPD_LISTEN; default 127.0.0.1:8080)',
    )
    .option('--data-dir <dir>', 'directory of the database, master key and backups (OTPD_DATA_DIR)')
    .option('--public-url <url>', 'URL at which clients reach the server (OTPD_PUBLIC_URL)')
    .option(
      '--domain <name>',
      'name to serve over HTTPS, with a certificate by ACME; repeatable (OTPD_TLS_DOMAINS)',
      collect,
    )
    .option(
      '--tls-cert <file>',
      'certificate to serve over HTTPS, in PEM with its chain (OTPD_TLS_CERT_FILE)',
    )
    .option('--tls-key <file>', 'private key of the certificate, in PEM (OTPD_TLS_KEY_FILE)')
    .option('--compat <list>', 'APIs of other services to answer too: twilio-verify, camara (OTPD_COMPAT)')
    .option('--dev', 'keep all data in a temporary directory, removed at exit (OTPD_DEV)')
    .option('--no-migrate', 'refuse to start on an older database instead of migrating it')
    .option('--log-format <format>', 'text or json (OTPD_LOG_FORMAT; default text)')
    .option('--log-level <level>', 'debug, info, warn or error (OTPD_LOG_LEVEL; default info)')

/** Loads the configuration as the server does: flags, environment, file, defaults. */
export async function loadServerConfig(
  io: Io,
  flags: Flags,
  use: ConfigUse = 'serve',
): Promise<LoadedConfig> {
  const { loadConfig, processInput } = await import('../../src/server/bundle.ts')
  return loadConfig(processInput(flags, io), { use })
}

/**
 * Loads what a move to PostgreSQL needs.
 *
 * @throws CliError CONFIG_INVALID with the first problems as hints
 */
export async function loadMoveConfig(
  io: Io,
  flags: Flags,
): Promise<{ source: LoadedConfig; config: Config; target: DatabaseConfig }> {
  const server = await import('../../src/server/bundle.ts')
  const { source, target, problems } = server.loadMoveConfig(server.processInput(flags, io))
  const config = requireConfig({ ...source, config: target && source.config, problems }, exitCodes.usage)
  if (target === null) throw new Error('a missing database is a problem')
  return { source, config, target }
}

/**
 * Returns the configuration if it is valid.
 *
 * @throws CliError CONFIG_INVALID with the first problems as hints
 */
export function requireConfig({ config, problems }: LoadedConfig, exitCode: ExitCode): Config {
  if (config !== null) return config
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`
  throw new CliError(exitCode, 'CONFIG_INVALID', `The configuration has ${count}.`, {
    hints: firstProblems(problems).flatMap(({ source, message, remedy }) => [
      `${source}: ${message}`,
      `  ${remedy}`,
    ]),
  })
}
