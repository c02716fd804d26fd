import type { Api, AppCredentials } from './api.ts'
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import { isRecord } from '../../src/shared/json.ts'

export type EnvFileOption = { envFile?: string }

type EnvFile = { path: string; values: Record<string, string> }

/**
 * Reads `KEY=value` lines; accepts `export`, quotes, comments and blank lines, as shells and dotenv files do.
 *
 * @throws usage error when the file cannot be read
 */
export function readEnvFile(io: Io, path: string): EnvFile {
  let text: string
  try {
    text = readFileSync(resolve(io.workingDirectory, path), 'utf8')
  } catch {
    throw usageError(
      `The --env-file ${path} cannot be read.`,
      'Create one with: otpd app create NAME --project P --env live --env-file FILE',
    )
  }
  const values: Record<string, string> = {}
  for (const line of text.split(/\r?\n/)) {
    const [, key, value] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (key !== undefined && value !== undefined) values[key] = value.replace(/^(["'])(.*)\1$/, '$2')
  }
  return { path, values }
}

/**
 * Finds the credentials in the --env-file if there is one, else in the environment. Never mixes the two, which could
 * belong to different applications.
 *
 * @throws usage error naming the missing variables
 */
export function findAppCredentials(io: Io, envFile: EnvFile | null): AppCredentials {
  const sourceName = envFile?.path ?? 'the environment (OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY)'
  const source = envFile?.values ?? io.env
  const { OTPD_CLIENT_ID: clientId, OTPD_CLIENT_SECRET: clientSecret, OTPD_API_KEY: apiKey } = source
  if (clientId && clientSecret && apiKey) return { clientId, clientSecret, apiKey, source: sourceName }
  const missing = ['OTPD_CLIENT_ID', 'OTPD_CLIENT_SECRET', 'OTPD_API_KEY'].filter((name) => !source[name])
  throw usageError(
    envFile === null
      ? 'This command needs the credentials of an application.'
      : `${envFile.path} has no ${missing.join(', ')}.`,
    'Pass the file they were saved in: --env-file FILE',
    ...(envFile === null ? [`Or set ${missing.join(', ')}.`] : []),
    'No application yet? Create one:',
    '  otpd app create web --project NAME --env live --env-file .env.otpd',
  )
}

/** Connects to the server that the --env-file names, with the application's credentials. */
export function connectAsApplication(
  { io, connect }: { io: Io; connect(envFileServer?: string): { api: Api } },
  { envFile }: EnvFileOption,
) {
  const file = envFile === undefined ? null : readEnvFile(io, envFile)
  const { api } = connect(file?.values.OTPD_SERVER)
  return { api, credentials: findAppCredentials(io, file) }
}

/**
 * Creates the file before the call to the server, so that credentials which are shown only once have a place to go.
 *
 * @throws usage error when the file already exists (it is never overwritten) or cannot be created
 */
export function reserveEnvFile(io: Io, path: string) {
  const absolutePath = resolve(io.workingDirectory, path)
  let descriptor: number
  try {
    descriptor = openSync(absolutePath, 'wx', 0o600)
  } catch (error) {
    const alreadyExists = isRecord(error) && error.code === 'EEXIST'
    throw usageError(
      alreadyExists
        ? `${path} already exists and is not overwritten; nothing was created.`
        : `${path} cannot be written; nothing was created.`,
      'Choose another file: --env-file FILE',
    )
  }
  return {
    /** Writes the lines and closes the file, whose mode is 0600. False if the write failed. */
    write(comment: string, values: Record<string, string>) {
      const lines = Object.entries(values).map(([key, value]) => `${key}=${value}`)
      try {
        writeFileSync(descriptor, [`# ${comment}`, ...lines, ''].join('\n'))
        return true
      } catch {
        return false
      } finally {
        closeSync(descriptor)
      }
    },
    /** Removes the empty file, after the call to the server failed. */
    discard() {
      closeSync(descriptor)
      rmSync(absolutePath, { force: true })
    },
  }
}
