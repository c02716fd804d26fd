import type { Application, CreatedApiToken, CreatedApplication } from '../client/resources.ts'
import { keysOf } from '../../src/shared/fields.ts'
import type { Environment } from './console-context.ts'

/** A credential. `label` is short, so that the whole value fits next to it. */
type Credential = { name: string; label: string; variable: string; value: string }

/** Variable that programs read an API token from. */
const tokenVariable = 'OTPD_TOKEN'

/** Credentials that were just created. The server never returns their secrets again. */
export type IssuedCredentialSet = {
  /** Name of the application, or of the API token. */
  name: string
  /** Null for an API token. */
  environment: Environment | null
  title: string
  about: string
  /** Way out for a user who has lost them. */
  remedy: string
  /** First line of the file that they are saved to. */
  comment: string
  credentials: readonly Credential[]
}

export const credentialNames = {
  clientId: { name: 'client id', label: 'client id', variable: 'OTPD_CLIENT_ID' },
  clientSecret: { name: 'client secret', label: 'secret', variable: 'OTPD_CLIENT_SECRET' },
  apiKey: { name: 'API key', label: 'API key', variable: 'OTPD_API_KEY' },
  webhookSecret: { name: 'webhook secret', label: 'webhook', variable: 'OTPD_WEBHOOK_SECRET' },
} as const

export type CredentialKey = keyof typeof credentialNames

export const credentialKeys = keysOf(credentialNames)

/** The credentials that can be rotated, with their names in the API. */
export const rotations = {
  clientSecret: 'secret',
  apiKey: 'api',
  webhookSecret: 'webhook_secret',
} as const satisfies Partial<Record<CredentialKey, string>>

const rotateRemedy = 'You can rotate them later with R on the page of the application.'

/** Returns the credentials of a new application. */
export const credentialsFromCreation = (app: CreatedApplication): IssuedCredentialSet => ({
  name: app.name,
  environment: app.environment,
  title: `Application ${app.name} (${app.environment}) created`,
  about: 'The secret and the API key are shown only once.',
  remedy: rotateRemedy,
  comment: `otpd application ${withoutLineBreaks(app.name)} (${app.id}, ${app.environment})`,
  credentials: credentialKeys.map((key) => ({ ...credentialNames[key], value: app[key] })),
})

/** Returns the new credential after a rotation. */
export function credentialsFromRotation(
  app: Pick<Application, 'id' | 'name' | 'environment'>,
  key: keyof typeof rotations,
  { value, rotatedAt }: { value: string; rotatedAt: string },
): IssuedCredentialSet {
  const { name } = credentialNames[key]
  return {
    name: app.name,
    environment: app.environment,
    title: `New ${name} for ${app.name}`,
    about:
      key === 'webhookSecret'
        ? 'Webhook deliveries are now signed with it.'
        : 'The old one no longer works. This one is shown only once.',
    remedy: rotateRemedy,
    comment: `${name} of the otpd application ${app.id}, ${rotatedAt}`,
    credentials: [{ ...credentialNames[key], value }],
  }
}

/** Returns the token that was created. */
export const credentialsFromToken = ({ id, name, scopes, token }: CreatedApiToken): IssuedCredentialSet => ({
  name: `API token ${name}`,
  environment: null,
  title: `API token ${name} created`,
  about: `It is shown only once. Programs use it as ${tokenVariable}, people with otpd login --token-stdin.`,
  remedy: 'You can revoke the token, and create another one.',
  comment: `otpd API token ${withoutLineBreaks(name)} (${id}, ${scopes.join(', ')})`,
  credentials: [{ name: 'API token', label: 'token', variable: tokenVariable, value: token }],
})

/** Keeps a line break in a name from starting a new line of the file. */
const withoutLineBreaks = (text: string) => text.replaceAll(/\p{Cc}|\u2028|\u2029/gu, ' ')
