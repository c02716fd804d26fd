import type { ChallengeService, ChallengeSettings } from '../domain/model/challenge.ts'
import { isForServer, type ConfigUse } from './database.ts'
import type { ConfigInput, Reader } from './reader.ts'
import { decodePasswordFile } from './secrets.ts'
import { readSecretFile, reportExposed } from './secret-files.ts'
import type { SettingId } from './settings.ts'
import {
  isHostName,
  parseChoice,
  parseEach,
  parseInteger,
  parsePath,
  parseProviderUrl,
  quote,
  type Parsed,
} from './values.ts'

/**
 * Reads the `[guard.challenge]` table. A key that the kind has no use for is reported, as one that is missing: a challenge that
 * cannot be passed would refuse every customer that it is shown to.
 *
 * @returns null without a kind
 */
export function readChallenge(reader: Reader, input: ConfigInput, use: ConfigUse): ChallengeSettings | null {
  const { read, report } = reader
  const kind = read<ChallengeSettings['kind'] | null>(
    'guardChallengeKind',
    parseChoice('turnstile', 'hcaptcha', 'altcha'),
    null,
  )
  const text = (id: SettingId) => read<string | null>(id, parseToken, null)
  const siteKey = text('guardChallengeSiteKey')
  const secretText = text('guardChallengeSecret')
  const secretFile = read<string | null>('guardChallengeSecretFile', parsePath, null)
  const hostnames = read<string[]>('guardChallengeHostnames', parseHostNames, [])
  const timeout = read('guardChallengeTimeoutSeconds', parseInteger(1, 10), 5)
  const verifyUrl = read<string | null>('guardChallengeVerifyUrl', parseProviderUrl, null)
  if (secretText.source !== null && secretFile.source !== null)
    report(secretText.source, `The secret is also set by ${secretFile.source}.`, 'Remove one of the two.')
  // Other commands do without, so that they need not read it.
  const needsSecret = isForServer(use)
  if (needsSecret) reportExposed(reader, input, secretFile)
  const secret = needsSecret
    ? (secretText.value ?? readSecretFile(reader, input, secretFile, decodeSecretFile))
    : null

  if (kind.value === null || kind.value === 'altcha') {
    for (const { source } of [siteKey, secretText, secretFile, hostnames, timeout, verifyUrl])
      if (source !== null)
        report(
          source,
          kind.value === null ? 'There is no guard.challenge.kind.' : 'altcha is made and checked by otpd.',
          kind.value === null ? 'Set it to turnstile, hcaptcha or altcha.' : 'Remove this setting.',
        )
    return kind.value === null ? null : { kind: kind.value }
  }
  const source = kind.source ?? 'default'
  if (siteKey.source === null)
    report(
      source,
      `${kind.value} needs a site key.`,
      'Set guard.challenge.siteKey to the one of your widget.',
    )
  if (needsSecret && secretText.source === null && secretFile.source === null)
    report(
      source,
      `${kind.value} needs a secret.`,
      'Set guard.challenge.secretFile to a file that contains it, or OTPD_GUARD_CHALLENGE_SECRET.',
    )
  const service: ChallengeService = {
    kind: kind.value,
    siteKey: siteKey.value ?? '',
    secret: secret ?? '',
    hostnames: hostnames.value,
    timeoutMs: timeout.value * 1000,
    verifyUrl: verifyUrl.value,
  }
  return service
}

/** Keys and secrets are visible ASCII. The value is not repeated: a secret may be in the place of a key. */
function parseToken(text: string): Parsed<string> {
  if (/^[\x21-\x7e]{1,256}$/.test(text)) return { value: text }
  return {
    fault: 'This is not a key: it has spaces, other characters than ASCII, or more than 256.',
    remedy: 'Copy it from the page of your widget.',
  }
}

function decodeSecretFile(bytes: Uint8Array): Parsed<string> {
  const decoded = decodePasswordFile(bytes)
  if ('value' in decoded) return parseToken(decoded.value.trim())
  return { fault: decoded.fault.replace('password', 'secret'), remedy: 'Write the secret, and nothing else.' }
}

function parseHostNames(text: string): Parsed<string[]> {
  return parseEach<string>(text, (word) =>
    isHostName(word)
      ? { value: word.toLowerCase() }
      : {
          fault: `${quote(word)} is not a host name.`,
          remedy: 'Use names without scheme, port or *, such as shop.example.com.',
        },
  )
}
