import { isAbsolute, join } from 'node:path'
import type { ConfigInput, ResolvedSetting, Reader } from './reader.ts'
import { readSecretFile, reportExposed } from './secret-files.ts'
import { settings, type SettingId } from './settings.ts'
import { decodeMasterKeyFile, decodePasswordFile, parseMasterKey } from './secrets.ts'
import { parseEmail, parsePath, parseProviderUrl, parseWords } from './values.ts'

export type OidcConfig = {
  issuer: string
  /** At least one. */
  audience: string[]
  /** Null: taken from the issuer's discovery document. */
  jwksUri: string | null
  clientId: string | null
}

/** Reads the external OpenID Connect provider; null selects the built-in provider. */
export function readOidc(reader: Reader): OidcConfig | null {
  const issuer = reader.read<string | null>('oidcIssuer', parseProviderUrl, null)
  const audience = reader.read<string[]>('oidcAudience', parseWords, [])
  const jwksUri = reader.read<string | null>('oidcJwksUri', parseProviderUrl, null)
  const clientId = reader.read<string | null>('oidcClientId', (text) => ({ value: text }), null)
  if (issuer.source === null) {
    for (const { source, value } of [audience, jwksUri, clientId]) {
      // An empty list of audiences requires nothing.
      if (source === null || value?.length === 0) continue
      reader.report(
        source,
        'This setting needs an issuer, and none is configured.',
        'Set OTPD_OIDC_ISSUER too, or remove this setting.',
      )
    }
  } else if (audience.value.length === 0) {
    const message = 'No audience is configured, so tokens issued for other services would be accepted.'
    reader.report(
      audience.source ?? issuer.source,
      message,
      'Set OTPD_OIDC_AUDIENCE to the client ID of otpd at the issuer.',
    )
  }
  if (issuer.value === null) return null
  return {
    issuer: issuer.value,
    audience: audience.value,
    jwksUri: jwksUri.value,
    clientId: clientId.value,
  }
}

/**
 * Reads the first account. Its password can only come from a file, since other processes and crash reports can see
 * environment variables.
 */
export function readAdmin(
  reader: Reader,
  input: ConfigInput,
): { email: string | null; password: string | null } {
  const email = reader.read<string | null>('adminEmail', parseEmail, null)
  const file = reader.read<string | null>('adminPasswordFile', parsePath, null)
  if (email.source !== null && file.source === null) reportIncompleteAdmin(reader, email, 'adminPasswordFile')
  if (email.source === null && file.source !== null) reportIncompleteAdmin(reader, file, 'adminEmail')
  return { email: email.value, password: readSecretFile(reader, input, file, decodePasswordFile) }
}

/** Reports a setting of the built-in provider that an external one would ignore. */
export function reportProviderSetting({ report }: Reader, { source }: ResolvedSetting<unknown>) {
  report(
    source ?? 'default',
    'This setting is for the built-in identity provider, but an external one is configured.',
    'Remove it, and require a second factor at the issuer.',
  )
}

/** Name of the master key among the credentials that systemd passes to a service (`LoadCredential=`). */
const credentialName = 'otpd-master-key'

/**
 * Reads the master key from a variable, a file or a credential of systemd; a null key means the key file in the data
 * directory. A file that other users can read is refused, except where the system mounts secrets.
 */
export function readMasterKey(
  reader: Reader,
  input: ConfigInput,
): { key: Uint8Array | null; source: string | null } {
  const key = reader.read<Uint8Array | null>('masterKey', parseMasterKey, null)
  const file = reader.read<string | null>('masterKeyFile', parsePath, null)
  const credential = findCredential(input)
  const [first, second] = [key.source, file.source, credential?.source ?? null].filter(
    (source) => source !== null,
  )
  if (first !== undefined && second !== undefined) {
    reader.report(second, `The master key is also set by ${first}.`, 'Remove one of the two.')
  }
  if (key.value !== null) return { key: key.value, source: key.source }
  const source = file.value === null ? credential : file
  if (!source || source.value === null) return { key: null, source: null }
  reportExposed(reader, input, source)
  const path = `${source.source ?? ''} (${source.value})`
  return { key: readSecretFile(reader, input, source, decodeMasterKeyFile), source: path }
}

function findCredential({ env, readMode }: ConfigInput): ResolvedSetting<string> | undefined {
  const directory = env['CREDENTIALS_DIRECTORY']
  if (directory === undefined || !isAbsolute(directory)) return undefined
  const path = join(directory, credentialName)
  try {
    readMode(path)
  } catch {
    return undefined
  }
  return { value: path, source: `$CREDENTIALS_DIRECTORY/${credentialName}` }
}

function reportIncompleteAdmin(reader: Reader, present: ResolvedSetting<unknown>, missing: SettingId) {
  const { variable } = settings[missing]
  reader.report(
    present.source ?? 'default',
    'The first account needs both an e-mail address and a password file.',
    `Set ${variable} too.`,
  )
}
