import { tryReadFile } from './paths.ts'
import type { ConfigInput, ResolvedSetting, Reader } from './reader.ts'
import { settings, type SettingId } from './settings.ts'
import { decodeMasterKeyFile, decodePasswordFile, parseMasterKey } from './secrets.ts'
import { parseEmail, parsePath, parseProviderUrl, parseWords, type Parsed } from './values.ts'

export type OidcConfig = {
  issuer: string
  /** At least one. */
  audience: string[]
  /** Null: as the issuer's discovery document says. */
  jwksUri: string | null
  clientId: string | null
}

/** Null is the built-in provider. */
export function readOidc(reader: Reader): OidcConfig | null {
  const issuer = reader.read<string | null>('oidcIssuer', parseProviderUrl, null)
  const audience = reader.read<string[]>('oidcAudience', parseWords, [])
  const jwksUri = reader.read<string | null>('oidcJwksUri', parseProviderUrl, null)
  const clientId = reader.read<string | null>('oidcClientId', (text) => ({ value: text }), null)
  if (issuer.source === null) {
    for (const { source, value } of [audience, jwksUri, clientId]) {
      // An empty list of audiences asks for nothing.
      if (source === null || value?.length === 0) continue
      reader.report(
        source,
        'There is no issuer that this belongs to.',
        'Give OTPD_OIDC_ISSUER too, or remove this.',
      )
    }
  } else if (audience.value.length === 0) {
    const message = 'An issuer signs tokens for other services too, and no audience is given.'
    reader.report(
      audience.source ?? issuer.source,
      message,
      'Give OTPD_OIDC_AUDIENCE: the client ID of otpd there.',
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

/** The first account, whose password comes from a file alone: an environment is readable by too many. */
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

/** Null is the key of the data directory. */
export function readMasterKey(reader: Reader, input: ConfigInput): Uint8Array | null {
  const key = reader.read<Uint8Array | null>('masterKey', parseMasterKey, null)
  const file = reader.read<string | null>('masterKeyFile', parsePath, null)
  if (key.source !== null && file.source !== null) {
    reader.report(file.source, `There is a master key in ${key.source} already.`, 'Keep one of the two.')
  }
  return key.value ?? readSecretFile(reader, input, file, decodeMasterKeyFile)
}

function reportIncompleteAdmin(reader: Reader, present: ResolvedSetting<unknown>, missing: SettingId) {
  const { variable } = settings[missing]
  reader.report(
    present.source ?? 'default',
    'The first account needs an address and a password.',
    `Give ${variable} too.`,
  )
}

function readSecretFile<T>(
  reader: Reader,
  input: ConfigInput,
  file: ResolvedSetting<string | null>,
  decode: (bytes: Uint8Array) => Parsed<T>,
): T | null {
  if (file.value === null) return null
  const content = tryReadFile(input, file.value)
  const decoded =
    'bytes' in content
      ? decode(content.bytes)
      : { ...content, remedy: 'Correct the path or the rights of the file.' }
  if ('value' in decoded) return decoded.value
  reader.report(file.source ?? 'default', decoded.fault, decoded.remedy)
  return null
}
