import type { Command } from 'commander'
import { CliError, exitCodes } from './errors.ts'

/** Flags and arguments whose names are not those of the API's fields. */
const names: Partial<Record<string, string | readonly string[]>> = {
  androidAppHash: 'android-hash',
  appId: 'app',
  defaultLocale: 'locale',
  environment: 'env',
  expiresAt: ['expires', 'for'],
  headers: 'header',
  otpTtlSeconds: 'otp-ttl',
  phoneNumber: 'phone',
  projectId: 'project',
  requestId: 'request',
  returnOrigins: 'return-origin',
  scopes: 'scope',
  targetId: 'target',
  texts: 'text',
  ttlSeconds: 'ttl',
  variables: 'variable',
  webOtpDomain: 'webotp-domain',
}

/**
 * Finds the flag or the argument of a command that sets a field of the API: `--otp-ttl`, `<phone>`. Null if the command
 * has none.
 */
export function flagForField(command: Command, field: string): string | null {
  const candidates = [toKebabCase(field), ...[names[field] ?? []].flat()]
  for (const name of candidates) {
    if (command.options.some(({ long }) => long === `--${name}`)) return `--${name}`
    const argument = command.registeredArguments.find((one) => one.name().split('|').includes(name))
    if (argument !== undefined) return `<${argument.name()}>`
  }
  return null
}

/** Converts `ttlSeconds` and `Idempotency-Key` to the form of flags. */
const toKebabCase = (field: string) => field.replaceAll(/(?<=[a-z])[A-Z]/g, '-$&').toLowerCase()

/**
 * Names flags and arguments of the command instead of the fields of the API. If all of them came from the command line, it
 * is a usage error, as if this program had found it.
 */
export function nameFlags(error: CliError, command: Command): CliError {
  if (error.fields.length === 0) return error
  const lines = error.fields.map(({ field, fault }) => {
    const [first = '', ...rest] = field.split('.')
    // The API counts the items of a list from 0; people, and the settings, count from 1.
    const items = rest.map((name) => (/^\d+$/.test(name) ? String(Number(name) + 1) : name))
    const place = [flagForField(command, first) ?? first, ...items].filter(Boolean).join(' ')
    const text = fault.replaceAll(/`(\w+)`/g, (quoted, name) => flagForField(command, name) ?? quoted)
    return place === '' ? text : `${place}: ${text}`
  })
  const isUsage =
    error.code === 'INVALID_ARGUMENT' &&
    error.fields.every(({ field }) => flagForField(command, field.split('.')[0] ?? '') !== null)
  const exitCode = isUsage ? exitCodes.usage : error.exitCode
  const { code, body, status, retryAfterSeconds, hints, cause } = error
  const [message = error.message, ...others] = lines
  const title = others.length === 0 ? message : `${lines.length} values are not valid.`
  return new CliError(exitCode, code, title, {
    hints: [...(others.length === 0 ? [] : lines), ...hints],
    retryAfterSeconds,
    cause,
    ...(status !== undefined && { status }),
    ...(body !== undefined && { body }),
  })
}
