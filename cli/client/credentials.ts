import type { AppCredentials } from './api.ts'
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Context } from '../context.ts'
import { usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import { isRecord } from '../session/profile.ts'

export type EnvFile = { path: string; values: Record<string, string> }

/** `KEY=value` lines; `export`, quotes, comments and blank lines as shells and dotenv files have them. */
export function readEnvFile(io: Io, path: string): EnvFile {
  let text: string
  try {
    text = readFileSync(resolve(io.workingDirectory, path), 'utf8')
  } catch {
    throw usageError(
      `The --env-file ${path} cannot be read.`,
      'Make one with: otpd app create NAME --project P --env test --env-file FILE',
    )
  }
  const values: Record<string, string> = {}
  for (const line of text.split(/\r?\n/)) {
    const [, key, value] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (key !== undefined && value !== undefined) values[key] = value.replace(/^(["'])(.*)\1$/, '$2')
  }
  return { path, values }
}

/** From the --env-file where there is one, else from the environment; never a mix of both, which would be two applications. */
export function findAppCredentials(io: Io, envFile: EnvFile | null): AppCredentials {
  const sourceName = envFile?.path ?? 'the environment (OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY)'
  const source = envFile?.values ?? io.env
  const { OTPD_CLIENT_ID: clientId, OTPD_CLIENT_SECRET: clientSecret, OTPD_API_KEY: apiKey } = source
  if (clientId && clientSecret && apiKey) return { clientId, clientSecret, apiKey, source: sourceName }
  const missing = ['OTPD_CLIENT_ID', 'OTPD_CLIENT_SECRET', 'OTPD_API_KEY'].filter((name) => !source[name])
  throw usageError(
    envFile === null
      ? 'This needs the credentials of an application.'
      : `${envFile.path} has no ${missing.join(', ')}.`,
    'Pass the file they were saved in: --env-file FILE',
    ...(envFile === null ? [`Or set ${missing.join(', ')}.`] : []),
    'No application yet? Create one:',
    '  otpd app create web --project NAME --env test --env-file .env.otpd',
  )
}

/** A connection to the server that the --env-file names, and the credentials to call it with. */
export function connectAsApplication(context: Context, { envFile }: { envFile?: string }) {
  const file = envFile === undefined ? null : readEnvFile(context.io, envFile)
  const { api } = context.connect(file?.values.OTPD_SERVER)
  return { api, credentials: findAppCredentials(context.io, file) }
}

/**
 * Takes the file before the server is asked, so that credentials which are shown once always have a place to go:
 * a file that exists is never overwritten (a usage error), and one that cannot be written is found out in time.
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
        ? `${path} exists already and is never overwritten; nothing was created.`
        : `${path} cannot be written; nothing was created.`,
      'Name another file: --env-file FILE',
    )
  }
  return {
    /** Writes the lines and closes the file, whose mode is 0600. False where the disk did not take them. */
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
    /** Gives the name back: nothing was created. */
    discard() {
      closeSync(descriptor)
      rmSync(absolutePath, { force: true })
    },
  }
}
