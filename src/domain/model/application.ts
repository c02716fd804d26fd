import { type FieldValues, keysOf } from '../../shared/fields.ts'
import { applicationFields } from '../../shared/application-fields.ts'
import type { MessageSettings } from './message-settings.ts'
import type { Developer } from './developer.ts'
import type { Environment } from '../../shared/otp-values.ts'

export type { Environment } from '../../shared/otp-values.ts'

/** The credentials of an application as stored. Only the webhook secret is readable. */
export type StoredCredentials = {
  clientIdSalt: string
  clientIdHash: string
  clientSecretSalt: string
  clientSecretHash: string
  clientSecretPreview: string
  apiKeySalt: string
  apiKeyHash: string
  apiKeyPreview: string
  /** Readable, because it signs every delivery, and sealed at rest. */
  webhookSecret: string
}

/** The stored form of a new credential. */
export type FreshCredential =
  | { type: 'secret' | 'api'; salt: string; hash: string; preview: string }
  | { type: 'webhook_secret'; value: string }

/** The values that a developer sets, as `applicationFields` defines them. */
export type ApplicationSettings = FieldValues<typeof applicationFields>

/** An application as stored. */
export type Application = Omit<StoredCredentials, 'webhookSecret'> &
  ApplicationSettings & {
    id: string
    developerId: string
    projectId: string
    name: string
    environment: Environment
    status: 'active' | 'disabled'
    clientSecretRotatedAt: number | null
    apiKeyRotatedAt: number | null
    webhookSecretRotatedAt: number | null
    /** Null if it cannot be decrypted. */
    webhookSecret: string | null
    /** Increases when a credential that authenticates requests is replaced. */
    credentialsVersion: number
    createdAt: number
    updatedAt: number
  }

export type NewApplication = Application & StoredCredentials

/** Fields to change; null clears a setting. */
export type ApplicationChanges = {
  [K in 'name' | 'status' | keyof ApplicationSettings]?: Application[K] | undefined
}

/**
 * An application as shown to its developer, with masked previews of its credentials. Times are in milliseconds;
 * rotation times are null before the first rotation.
 */
export type ApplicationView = ListedApplication & { clientId: string }

/** Stored fields that the developer sees: all without salts, hashes and the webhook secret. */
export const listedFields = [
  'id',
  'name',
  'projectId',
  'environment',
  'status',
  ...keysOf(applicationFields),
  'clientSecretPreview',
  'apiKeyPreview',
  'createdAt',
  'updatedAt',
  'clientSecretRotatedAt',
  'apiKeyRotatedAt',
  'webhookSecretRotatedAt',
] as const

export type ListedApplication = Pick<Application, (typeof listedFields)[number]>

/** The stored values that a request is authenticated against. */
export type ApplicationCredentials = Pick<
  Application,
  | 'id'
  | 'developerId'
  | 'projectId'
  | 'environment'
  | 'status'
  | 'otpTtlSeconds'
  | 'countries'
  | 'credentialsVersion'
  | 'clientIdSalt'
  | 'clientIdHash'
  | 'clientSecretSalt'
  | 'clientSecretHash'
  | 'apiKeySalt'
  | 'apiKeyHash'
> &
  MessageSettings & { developerStatus: Developer['status']; plan: string }

/** The authenticated application of a request, as of the credential check. */
export type CallingApplication = Pick<
  Application,
  'id' | 'developerId' | 'projectId' | 'environment' | 'otpTtlSeconds' | 'countries' | 'credentialsVersion'
> &
  MessageSettings & {
    /** Developer's plan; `resolvePlan` returns its limits. */
    plan: string
    /**
     * Version of the configuration in which the credentials were checked, see `ApplicationStore.configurationVersion`; undefined on
     * PostgreSQL.
     */
    configurationVersion?: number | undefined
    /** W3C trace context of this call, passed to providers and webhooks. */
    traceparent?: string | undefined
  }
