import type { Command } from 'commander'
import type { Config } from '../../src/config/config.ts'
import type { Host } from '../../src/host/host.ts'
import type { Context } from '../context.ts'
import { CliError, exitCodes, type ExitCode } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import { withProgress } from '../terminal/progress.ts'
import { explainCode } from '../../src/shared/error-cause.ts'
import { isRecord } from '../../src/shared/json.ts'
import type { OnStep } from '../../src/shared/progress.ts'
import { fieldFaults } from '../session/response-error.ts'
import { loadServerConfig, requireConfig } from './config.ts'
import { nameDataDir } from './name-data-dir.ts'

export type HostFlags = { dataDir?: string; config?: string }

/** Adds the flags of every command that works on the data directory. */
export const addHostFlags = <C extends Command>(command: C): C =>
  command
    .option('--data-dir <dir>', "the server's data directory (OTPD_DATA_DIR)")
    .option('--config <file>', "the server's configuration file (OTPD_CONFIG)")

/**
 * Runs `work` on the data directory of this machine, also while a server runs on it.
 *
 * @param access `read` for commands that only look: they create and change nothing
 *
 * @throws CliError with the code that the API would use
 */
export async function withHost<T>(
  context: Context,
  flags: HostFlags,
  access: 'read' | 'write',
  work: (host: Host) => Promise<T>,
): Promise<T> {
  const loaded = await loadServerConfig(context.io, flags, 'host command')
  const config = requireConfig(loaded, exitCodes.usage)
  await nameDataDir(context, loaded)
  const { giveToOwner, openHost } = await import('../../src/server/bundle.ts')
  try {
    const host = await openHost({ config, access, warn: context.output.warn })
    try {
      return await work(host)
    } finally {
      await host.close()
    }
  } catch (error) {
    throw asCliError(error)
  } finally {
    if (access === 'write' && config.dataDir !== null) giveToOwner(config.dataDir)
  }
}

/**
 * Runs `work` that must open the data directory itself: backup, restore and migrations. Shows the progress of its steps.
 *
 * @throws CliError for an expected failure
 */
export async function withDataDir<T>(
  context: Context,
  flags: HostFlags,
  work: (
    host: typeof import('../../src/server/bundle.ts'),
    needs: { config: Config; warn: Output['warn']; onStep: OnStep },
  ) => Promise<T>,
): Promise<T> {
  const loaded = await loadServerConfig(context.io, flags, 'migration')
  const config = requireConfig(loaded, exitCodes.usage)
  await nameDataDir(context, loaded)
  const host = await import('../../src/server/bundle.ts')
  try {
    return await withProgress(context, (onStep) => work(host, { config, warn: context.output.warn, onStep }))
  } catch (error) {
    throw asCliError(error)
  } finally {
    if (config.dataDir !== null) host.giveToOwner(config.dataDir)
  }
}

/** Converts an expected failure of the host to a CliError; returns any other error unchanged. */
export const asCliError = (error: unknown) =>
  startRefusedError(error) ?? operationRefusedError(error) ?? toServiceCliError(error) ?? error

/** Whether the server has its own accounts with passwords, not an OpenID provider. */
export async function hasBuiltInProvider(io: Io, flags: HostFlags) {
  return requireConfig(await loadServerConfig(io, flags, 'host command'), exitCodes.usage).oidc === null
}

/**
 * Converts a StartRefused error; null for any other error. Recognized by its name and fields, because loading the class
 * would load the server.
 */
export function startRefusedError(error: unknown) {
  if (!(error instanceof Error) || error.name !== 'StartRefused') return null
  const remedy = 'remedy' in error && typeof error.remedy === 'string' ? [error.remedy] : []
  const isUnreachable = 'isUnreachable' in error && error.isUnreachable === true
  const [exitCode, code] = isUnreachable
    ? ([exitCodes.unreachable, 'DATABASE_UNREACHABLE'] as const)
    : ([exitCodes.startRefused, 'START_REFUSED'] as const)
  return new CliError(exitCode, code, toSentence(error.message), {
    hints: remedy,
    cause: error,
  })
}

/** Converts an OperationRefused error of backup, restore or migrate; null for any other error. */
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
  PLACE_INVALID: exitCodes.usage,
  KEY_FILE_INVALID: exitCodes.usage,
}

/** An address keeps its first letter. */
const toSentence = (message: string) =>
  /^\w+:\/\//.test(message) ? `${message}.` : `${message.charAt(0).toUpperCase()}${message.slice(1)}.`

/** Converts a ServiceError of the domain, with the exit code of the same error over HTTP; null for any other error. */
function toServiceCliError(error: unknown) {
  if (!(error instanceof Error) || error.name !== 'ServiceError' || !isRecord(error)) return null
  const { code, reason, details } = error
  if (typeof code !== 'string') return null
  // The API says no more to its callers; who runs this command can mend it.
  const storeCode = isRecord(error.cause) && typeof error.cause.code === 'string' ? error.cause.code : null
  const message =
    code === 'UNAVAILABLE' && storeCode !== null
      ? `The database cannot store anything right now (${explainCode(storeCode)}).`
      : error.message
  const body = {
    error: {
      code,
      message,
      ...(reason !== undefined && { reason }),
      ...(details !== undefined && { details }),
    },
  }
  return new CliError(exitCodeByCode[code] ?? exitCodes.refused, code, message, {
    hints: code === 'UNAVAILABLE' ? ['Find the cause with: otpd doctor'] : [],
    body: JSON.stringify(body),
    fields: fieldFaults(details),
    cause: error,
  })
}

const exitCodeByCode: Record<string, ExitCode> = {
  INVALID_PHONE_NUMBER: exitCodes.usage,
  NOT_FOUND: exitCodes.notFound,
  UNAVAILABLE: exitCodes.bug,
  INTERNAL: exitCodes.bug,
}
