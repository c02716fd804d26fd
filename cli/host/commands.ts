import type { Command } from 'commander'
import type { Config } from '../../src/config/config.ts'
import type { Host } from '../../src/host/host.ts'
import type { Context } from '../context.ts'
import { CliError, exitCodes, type ExitCode } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'
import { isRecord } from '../session/profile.ts'
import { detailLines } from '../client/response-error.ts'
import { loadServerConfig, requireConfig } from './config.ts'

export type HostFlags = { dataDir?: string; config?: string }

/** What every command takes that works on the data directory. */
export const addHostFlags = (command: Command) =>
  command
    .option('--data-dir <dir>', "the server's data directory (OTPD_DATA_DIR)")
    .option('--config <file>', "the server's configuration file (OTPD_CONFIG)")

/** Works on the data directory of this machine, beside a running server too, and says what went wrong as the API does. */
export async function withHost<T>(
  { output }: Context,
  flags: HostFlags,
  work: (host: Host) => Promise<T>,
): Promise<T> {
  const config = requireConfig(await loadServerConfig(flags), exitCodes.usage)
  const { openHost } = await import('../../src/server/bundle.ts')
  try {
    const host = await openHost({ config, warn: output.warn })
    try {
      return await work(host)
    } finally {
      await host.close()
    }
  } catch (error) {
    throw asCliError(error)
  }
}

/** What needs no open database, or must not open it: backups, and what replaces or migrates it. */
export async function withDataDir<T>(
  { output }: Context,
  flags: HostFlags,
  work: (
    host: typeof import('../../src/server/bundle.ts'),
    needs: { config: Config; warn: Output['warn'] },
  ) => Promise<T>,
): Promise<T> {
  const config = requireConfig(await loadServerConfig(flags), exitCodes.usage)
  const host = await import('../../src/server/bundle.ts')
  try {
    return await work(host, { config, warn: output.warn })
  } catch (error) {
    throw asCliError(error)
  }
}

/** What a command says to an expected failure; any other error as it is. */
export const asCliError = (error: unknown) =>
  startRefusedError(error) ?? operationRefusedError(error) ?? toServiceCliError(error) ?? error

/** Whether passwords are this server's own affair, or another provider's. */
export async function hasBuiltInProvider(flags: HostFlags) {
  return requireConfig(await loadServerConfig(flags), exitCodes.usage).oidc === null
}

/**
 * The refusal to work on a data directory, as an error of the command line; null for any other error. Told by its
 * fields: the class itself would have to be loaded with the server.
 */
export function startRefusedError(error: unknown) {
  if (!(error instanceof Error) || error.name !== 'StartRefused') return null
  const remedy = 'remedy' in error && typeof error.remedy === 'string' ? [error.remedy] : []
  return new CliError(exitCodes.startRefused, 'START_REFUSED', toSentence(error.message), {
    hints: remedy,
    cause: error,
  })
}

/** The refusal to do something with the files of a data directory. */
function operationRefusedError(error: unknown) {
  if (!(error instanceof Error) || error.name !== 'OperationRefused' || !isRecord(error)) return null
  const { reason, remedy } = error
  if (typeof reason !== 'string' || typeof remedy !== 'string') return null
  return new CliError(exitCodeByReason[reason] ?? exitCodes.refused, reason, toSentence(error.message), {
    hints: [remedy],
    cause: error,
  })
}

const exitCodeByReason: Record<string, ExitCode> = {
  FILE_EXISTS: exitCodes.usage,
  FILE_MISSING: exitCodes.notFound,
  NO_DATABASE: exitCodes.notFound,
}

const toSentence = (message: string) => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`

/** An expected failure of the domain, with the exit code that the same answer over HTTP has. */
function toServiceCliError(error: unknown) {
  if (!(error instanceof Error) || error.name !== 'ServiceError' || !isRecord(error)) return null
  const { code, reason, details } = error
  if (typeof code !== 'string') return null
  const body = {
    error: {
      code,
      message: error.message,
      ...(reason !== undefined && { reason }),
      ...(details !== undefined && { details }),
    },
  }
  const hints = detailLines(details, error.message)
  return new CliError(exitCodeByCode[code] ?? exitCodes.refused, code, error.message, {
    body: JSON.stringify(body),
    hints,
    cause: error,
  })
}

const exitCodeByCode: Record<string, ExitCode> = {
  NOT_FOUND: exitCodes.notFound,
  UNAVAILABLE: exitCodes.bug,
  INTERNAL: exitCodes.bug,
}
