import type { ColumnKit } from './columns.ts'
import type { Environment } from '../../../shared/otp-values.ts'

/** Projects and applications. */
export const defineAppsTables = (c: ColumnKit) => ({
  projects: c.table('projects', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    name: c.text('name').notNull(),
    description: c.text('description'),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  }),

  applications: c.table('applications', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    projectId: c.text('project_id').notNull(),
    name: c.text('name').notNull(),
    environment: c.text('environment').notNull().$type<Environment>(),
    status: c.text('status').notNull().$type<'active' | 'disabled'>(),
    otpTtlSeconds: c.integer('otp_ttl_seconds').notNull(),
    clientIdSalt: c.text('client_id_salt').notNull(),
    clientIdHash: c.text('client_id_hash').notNull(),
    clientSecretSalt: c.text('client_secret_salt').notNull(),
    clientSecretHash: c.text('client_secret_hash').notNull(),
    clientSecretPreview: c.text('client_secret_preview').notNull(),
    clientSecretRotatedAt: c.timestampMs('client_secret_rotated_at'),
    apiKeySalt: c.text('api_key_salt').notNull(),
    apiKeyHash: c.text('api_key_hash').notNull(),
    apiKeyPreview: c.text('api_key_preview').notNull(),
    apiKeyRotatedAt: c.timestampMs('api_key_rotated_at'),
    webhookSecret: c.text('webhook_secret').notNull(),
    webhookSecretRotatedAt: c.timestampMs('webhook_secret_rotated_at'),
    credentialsVersion: c.integer('credentials_version').notNull().default(1),
    defaultLocale: c.text('default_locale'),
    webOtpDomain: c.text('web_otp_domain'),
    androidAppHash: c.text('android_app_hash'),
    defaultCountry: c.text('default_country'),
    countries: c.words('countries'),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  }),

  deletedApplications: c.table('deleted_applications', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    environment: c.text('environment').notNull().$type<Environment>(),
  }),
})
