import type { Application, CreatedApplication } from '../client/resources.ts'

/** A credential as the console names it, short enough for a whole value beside it. */
export type Credential = { name: string; label: string; variable: string; value: string }

/** What was made just now, of which the server will never show the secrets again. */
export type IssuedCredentialSet = {
  appName: string
  environment: 'live' | 'test'
  title: string
  about: string
  /** At the head of a file with it. */
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

/** What can be replaced, by the name that the API has for it. */
export const rotations = {
  clientSecret: 'secret',
  apiKey: 'api',
  webhookSecret: 'webhook_secret',
} as const satisfies Partial<Record<CredentialKey, string>>

const credentialKeys = ['clientId', 'clientSecret', 'apiKey', 'webhookSecret'] as const

export const credentialsFromCreation = (app: CreatedApplication): IssuedCredentialSet => ({
  appName: app.name,
  environment: app.environment,
  title: `Application ${app.name} (${app.environment}) was created`,
  about: 'The secret and the API key are shown now and never again.',
  comment: `otpd application ${withoutLineBreaks(app.name)} (${app.id}, ${app.environment})`,
  credentials: credentialKeys.map((key) => ({ ...credentialNames[key], value: app[key] })),
})

export function credentialsFromRotation(
  app: Pick<Application, 'id' | 'name' | 'environment'>,
  key: keyof typeof rotations,
  { value, rotatedAt }: { value: string; rotatedAt: string },
): IssuedCredentialSet {
  const { name } = credentialNames[key]
  return {
    appName: app.name,
    environment: app.environment,
    title: `New ${name} of ${app.name}`,
    about:
      key === 'webhookSecret'
        ? 'Deliveries are signed with it from now on.'
        : 'The old one works no more. This one is shown now and never again.',
    comment: `${name} of the otpd application ${app.id}, ${rotatedAt}`,
    credentials: [{ ...credentialNames[key], value }],
  }
}

/** A line break in a name must not become a line of the file. */
const withoutLineBreaks = (text: string) => text.replaceAll(/\p{Cc}|\u2028|\u2029/gu, ' ')
