import { constants } from 'node:fs'
import { dayMs, hourMs, minuteMs } from '../shared/durations.ts'
import { isRecord } from '../shared/json.ts'
import { backupSettings } from './backup-settings.ts'
import type { ConfigUse } from './database.ts'
import { secretPrefix, type ConfigInput, type Reader, type ResolvedSetting } from './reader.ts'
import { decodeText } from './secrets.ts'
import { readSecretFile, reportExposed } from './secret-files.ts'
import { parseInteger, parsePath, quote, type Parsed } from './values.ts'

/** Place of backups: a folder (null: `backups` in the data directory), or objects of a bucket below a prefix. */
export type BackupTarget =
  { kind: 'folder'; path: string | null } | { kind: 's3'; bucket: string; prefix: string }

/** Address of an S3 service, and the public half of the credentials. */
export type S3Settings = { endpoint: string; region: string; accessKeyId: string | null }

export type BackupConfig = {
  /** Milliseconds from one backup of the server to the next; null: it makes none. */
  everyMs: number | null
  /** Backups that pruning leaves. At least 1. */
  keep: number
  to: BackupTarget
  s3: S3Settings
}

/** Secret half of the credentials at an S3 service. */
export type S3Secrets = { secretAccessKey: string; sessionToken: string | null }

/**
 * Reads where backups go and how often the server makes one. Credentials that otpd's settings do not name come from the
 * variables of Amazon's programs.
 *
 * @param options.databaseSource what names a PostgreSQL database, which otpd does not back up; null without one
 */
export function readBackup(
  reader: Reader,
  input: ConfigInput,
  { databaseSource, use }: { databaseSource: string | null; use: ConfigUse },
): { config: BackupConfig; secrets: S3Secrets | null } {
  const { read, report } = reader
  const { env } = input
  const every = read<number | null>('backupEvery', parseEvery, null, { show: (ms) => ms && showEvery(ms) })
  const keep = read('backupKeep', parseInteger(1, 10_000), 14)
  const folder: BackupTarget = { kind: 'folder', path: null }
  const to = read<BackupTarget>('backupTo', parseBackupTarget, folder, { show: showTarget })
  if (databaseSource === null) checkFolder(to)
  const endpoint = readWithVariable(
    'backupS3Endpoint',
    ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'],
    parseEndpoint,
  )
  const region = readWithVariable('backupS3Region', ['AWS_REGION', 'AWS_DEFAULT_REGION'], parseRegion)
  const keyId = readWithVariable('backupAccessKeyId', ['AWS_ACCESS_KEY_ID'], (text) => ({ value: text }))
  const secretFile = read<string | null>('backupSecretAccessKeyFile', parsePath, null)
  const secretEnv = read<string | null>('backupSecretAccessKeyEnv', parseVariableName, null)
  const secret = readSecret()

  if (databaseSource !== null) {
    for (const { source } of [every, keep, to, region, endpoint, keyId, secretFile, secretEnv])
      if (source !== null)
        report(
          source,
          'otpd does not back up PostgreSQL.',
          "Use pg_dump or your provider's backups, and remove this setting.",
        )
  } else if (to.value.kind === 's3' && (keyId.value === null || secret === null)) {
    const isReported = (secretFile.source ?? secretEnv.source) !== null && keyId.value !== null
    if (!isReported)
      report(
        to.source ?? 'default',
        'There are no credentials for the S3 service.',
        `Set ${backupSettings.backupAccessKeyId.variable} and ${backupSettings.backupSecretAccessKeyFile.variable}, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
      )
  }
  const regionName = region.value ?? 'us-east-1'
  const config: BackupConfig = {
    everyMs: every.value,
    keep: keep.value,
    to: to.value,
    s3: {
      endpoint: endpoint.value ?? `https://s3.${regionName}.amazonaws.com`,
      region: regionName,
      accessKeyId: keyId.value,
    },
  }
  return { config, secrets: secret }

  /** Only a check of the configuration fails: a disk that is not mounted must not keep a server from starting. */
  function checkFolder({ value, source }: ResolvedSetting<BackupTarget>) {
    if (value.kind === 's3' || value.path === null || source === null) return
    const fault = findFolderFault(input, value.path)
    if (fault === null) return
    const tell = use === 'check' ? report : reader.warn
    tell(source, fault, 'Mount or create it, or name another one. Without it no backup is made.')
  }

  /** Reads a setting, or one of Amazon's variables in its place. */
  function readWithVariable(
    id: 'backupS3Region' | 'backupS3Endpoint' | 'backupAccessKeyId',
    variables: readonly string[],
    parse: (text: string) => Parsed<string>,
  ): ResolvedSetting<string | null> {
    const variable = variables.find((name) => env[name])
    const parsed = variable === undefined ? undefined : parse(env[variable]?.trim() ?? '')
    const fallback = parsed && 'value' in parsed ? parsed.value : null
    return read<string | null>(id, parse, fallback, {
      ...(fallback !== null && variable !== undefined && { defaultOrigin: variable }),
    })
  }

  function readSecret(): S3Secrets | null {
    if (secretFile.source !== null && secretEnv.source !== null)
      report(
        secretEnv.source,
        `The secret access key is also set by ${secretFile.source}.`,
        'Remove one of the two.',
      )
    if (secretFile.value !== null) {
      reportExposed(reader, input, secretFile)
      const secretAccessKey = readSecretFile(reader, input, secretFile, decodeSecretFile)
      return secretAccessKey === null ? null : { secretAccessKey, sessionToken: null }
    }
    const variable = secretEnv.value ?? 'AWS_SECRET_ACCESS_KEY'
    const secretAccessKey = env[variable]
    if (secretAccessKey)
      return { secretAccessKey, sessionToken: (secretEnv.value === null && env['AWS_SESSION_TOKEN']) || null }
    if (secretEnv.value !== null)
      report(
        secretEnv.source ?? 'default',
        `There is no variable ${variable}.`,
        `Set it, or name another one, such as ${secretPrefix}S3.`,
      )
    return null
  }
}

/** Says why a path is not that of a folder; null if it is one, or cannot be looked at. */
function findFolderFault({ readMode }: ConfigInput, path: string): string | null {
  try {
    return (readMode(path) & constants.S_IFMT) === constants.S_IFDIR ? null : `${path} is not a folder.`
  } catch (error) {
    const code = isRecord(error) ? error['code'] : undefined
    return code === 'ENOENT' || code === 'ENOTDIR' ? `There is no folder ${path}.` : null
  }
}

const everyRemedy = 'Use off, or a time like 24h, 30m or 7d, from 5m to 31d.'
const unitMs: Record<string, number> = { m: minuteMs, h: hourMs, d: dayMs }

/** Parses `30m`, `24h` or `7d` to milliseconds; `off` to null. */
function parseEvery(text: string): Parsed<number | null> {
  if (text === 'off') return { value: null }
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  const ms = Number(count) * (unitMs[unit] ?? Number.NaN)
  if (ms >= 5 * minuteMs && ms <= 31 * dayMs) return { value: ms }
  if (ms < 5 * minuteMs) return { fault: `${quote(text)} is below 5 minutes.`, remedy: everyRemedy }
  if (ms > 31 * dayMs) return { fault: `${quote(text)} is above 31 days.`, remedy: everyRemedy }
  return { fault: `${quote(text)} is not a time.`, remedy: everyRemedy }
}

/** Formats an interval as `parseEvery` reads it. */
export const showEvery = (ms: number): string =>
  ms % dayMs === 0 && ms > dayMs
    ? `${ms / dayMs}d`
    : ms % hourMs === 0
      ? `${ms / hourMs}h`
      : `${ms / minuteMs}m`

/** Formats a target as the setting is written; null for the default folder. */
export const showTarget = (target: BackupTarget): string | null =>
  target.kind === 'folder' ? target.path : `s3://${[target.bucket, target.prefix].filter(Boolean).join('/')}`

const targetRemedy = 'Use a folder, or s3://BUCKET/PREFIX.'

/** Parses a folder or `s3://BUCKET/PREFIX`; the prefix has no slash at its ends, and may be empty. */
export function parseBackupTarget(text: string, base: string): Parsed<BackupTarget> {
  if (/^s3:/i.test(text)) {
    const [, bucket = '', path = ''] = /^s3:\/\/([^/]*)(?:\/(.*))?$/i.exec(text) ?? []
    if (!/^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i.test(bucket))
      return { fault: 'This is not the name of a bucket.', remedy: targetRemedy }
    const prefix = path.replaceAll(/^\/+|\/+$/g, '')
    if (prefix.length > 512 || !/^[\w!.*'()/=-]*$/.test(prefix) || /(^|\/)\.{0,2}(\/|$)/.test(prefix || 'x'))
      return {
        fault: 'The prefix has characters or segments that S3 services disagree on.',
        remedy: targetRemedy,
      }
    return { value: { kind: 's3', bucket, prefix } }
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
    return { fault: `${quote(text.replace(/\/\/.*/, '//…'))} is not supported.`, remedy: targetRemedy }
  const path = parsePath(text, base)
  return 'fault' in path ? path : { value: { kind: 'folder', path: path.value } }
}

function parseRegion(text: string): Parsed<string> {
  if (/^[a-z0-9-]{1,40}$/i.test(text)) return { value: text }
  return { fault: `${quote(text)} is not the name of a region.`, remedy: 'Use one such as eu-central-1.' }
}

function parseEndpoint(text: string): Parsed<string> {
  const remedy = 'Use a URL such as https://s3.eu-central-1.amazonaws.com.'
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return { fault: 'This is not an http or https URL.', remedy }
  if (url.username || url.password) return { fault: 'The URL contains a user name or password.', remedy }
  if (url.pathname !== '/' || /[?#]/.test(text))
    return { fault: 'The URL contains a path or a query.', remedy: 'Name the bucket in backup.to.' }
  return { value: url.origin }
}

function parseVariableName(text: string): Parsed<string> {
  // Upper case, as variables are by convention, so that a secret access key in its place is not taken for a name, and shown.
  if (/^[A-Z_][A-Z0-9_]*$/.test(text)) return { value: text }
  return { fault: 'This is not the name of a variable.', remedy: `Name one, such as ${secretPrefix}S3.` }
}

function decodeSecretFile(bytes: Uint8Array): Parsed<string> {
  const text = decodeText(bytes)?.trim()
  if (text && !/[\p{Cc}\s]/u.test(text)) return { value: text }
  return {
    fault: 'The file does not hold one line of text.',
    remedy: 'Write the secret access key, and nothing else.',
  }
}
