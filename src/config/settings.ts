import { backupSettings } from './backup-settings.ts'
import { databaseSettings } from './database-settings.ts'
import { guardSettings } from './guard-settings.ts'
import { limitSettings } from './limit-settings.ts'
import { proofSettings } from './proof-settings.ts'
import type { Setting } from './setting.ts'
import { domainSettings, tlsSettings } from './tls-settings.ts'

/**
 * Every setting of the server as data. `otpd config show` and the guide's table are generated from it. `config.ts`
 * parses the values and holds the defaults.
 */
export const settings = {
  config: {
    name: 'config',
    kind: 'text',
    variable: 'OTPD_CONFIG',
    flag: '--config',
    notInFile: true,
    default: '/etc/otpd/otpd.toml, then $XDG_CONFIG_HOME/otpd/server.toml',
    description: 'The configuration file (TOML). A file named here must exist.',
  },
  ...domainSettings,
  listen: {
    name: 'server.listen',
    kind: 'text',
    variable: 'OTPD_LISTEN',
    flag: '--listen',
    default: '127.0.0.1:8080; 0.0.0.0:443 with tls.domains',
    description: 'HOST:PORT to listen on. Port 0 picks a free port; IPv6 addresses go in brackets.',
  },
  drainSeconds: {
    name: 'server.drainSeconds',
    kind: 'integer',
    variable: 'OTPD_DRAIN_SECONDS',
    default: '0',
    description:
      'Behind a load balancer: how long a server that shuts down still takes calls, 0 to 60 seconds, while its readiness is 503.',
  },
  dev: {
    name: 'dev',
    kind: 'switch',
    variable: 'OTPD_DEV',
    flag: '--dev',
    notInFile: true,
    default: 'off',
    description: 'Development mode: keep all data in a temporary folder and listen on loopback only.',
  },
  ...databaseSettings,
  dataDir: {
    name: 'server.dataDir',
    kind: 'text',
    variable: 'OTPD_DATA_DIR',
    flag: '--data-dir',
    default: '$STATE_DIRECTORY, /var/lib/otpd for root, otherwise $XDG_DATA_HOME/otpd',
    description: 'Folder of the database, the master key and the backups.',
  },
  publicUrl: {
    name: 'server.publicUrl',
    kind: 'text',
    variable: 'OTPD_PUBLIC_URL',
    flag: '--public-url',
    default: 'the first of tls.domains, otherwise the listening address',
    description: 'URL under which clients reach this server; used in tokens, callbacks and API documents.',
  },
  ...tlsSettings,
  noMigrate: {
    name: 'server.noMigrate',
    kind: 'switch',
    variable: 'OTPD_NO_MIGRATE',
    flag: '--no-migrate',
    default: 'off',
    description: 'Refuse to start on an older database instead of migrating it.',
  },
  logFormat: {
    name: 'log.format',
    kind: 'text',
    variable: 'OTPD_LOG_FORMAT',
    flag: '--log-format',
    default: 'text',
    description: '`text` for people, or `json` with one object per line.',
  },
  logLevel: {
    name: 'log.level',
    kind: 'text',
    variable: 'OTPD_LOG_LEVEL',
    flag: '--log-level',
    default: 'info',
    description: '`debug`, `info`, `warn` or `error`. Requests are logged at `debug` only.',
  },
  masterKey: {
    name: 'masterKey',
    kind: 'text',
    variable: 'OTPD_MASTER_KEY',
    notInFile: true,
    secret: true,
    default: 'master.key in the data directory, created at the first start',
    description: 'Key that encrypts the data keys in the database: 32 bytes in hexadecimal or base64.',
  },
  masterKeyFile: {
    name: 'server.masterKeyFile',
    kind: 'text',
    variable: 'OTPD_MASTER_KEY_FILE',
    default: 'none',
    description:
      'File that contains the master key, instead of OTPD_MASTER_KEY. Other users must not read it.',
  },
  trustedProxies: {
    name: 'server.trustedProxies',
    kind: 'list',
    variable: 'OTPD_TRUSTED_PROXIES',
    default: 'none',
    description: 'Addresses or CIDRs of the proxies whose X-Forwarded-For header is trusted.',
  },
  corsOrigins: {
    name: 'server.corsOrigins',
    kind: 'list',
    variable: 'OTPD_CORS_ORIGINS',
    default: 'none',
    description: 'Origins whose pages may call the console routes (CORS), exactly as browsers send them.',
  },
  compat: {
    name: 'compat.enable',
    kind: 'list',
    variable: 'OTPD_COMPAT',
    flag: '--compat',
    default: 'none',
    description: 'APIs of other services to answer too, for clients that switch: `twilio-verify`, `camara`.',
  },
  oidcIssuer: {
    name: 'auth.oidcIssuer',
    kind: 'text',
    variable: 'OTPD_OIDC_ISSUER',
    default: 'the built-in provider',
    description: 'OpenID Connect provider at which developers log in: https, or http on loopback.',
  },
  oidcAudience: {
    name: 'auth.oidcAudience',
    kind: 'list',
    variable: 'OTPD_OIDC_AUDIENCE',
    default: 'none; required with an issuer',
    description: 'Accepted audiences (`aud`) of ID tokens.',
  },
  oidcJwksUri: {
    name: 'auth.oidcJwksUri',
    kind: 'text',
    variable: 'OTPD_OIDC_JWKS_URI',
    default: "from the issuer's discovery document",
    description: "URL of the issuer's public keys (JWKS).",
  },
  oidcClientId: {
    name: 'auth.oidcClientId',
    kind: 'text',
    variable: 'OTPD_OIDC_CLIENT_ID',
    default: 'the first audience',
    description: 'Client ID that `otpd login` uses at the issuer.',
  },
  signup: {
    name: 'auth.signup',
    kind: 'text',
    variable: 'OTPD_SIGNUP',
    default: 'closed',
    description:
      '`open`: everyone who can log in at the issuer gets an account; `closed`: the operator creates accounts, as with the built-in provider.',
  },
  requireTotp: {
    name: 'auth.requireTotp',
    kind: 'switch',
    variable: 'OTPD_REQUIRE_TOTP',
    default: 'off',
    description:
      'Require TOTP of every developer; until they enable it, they can do nothing else. Built-in provider only.',
  },
  tokenMaxHours: {
    name: 'auth.tokenMaxHours',
    kind: 'integer',
    variable: 'OTPD_TOKEN_MAX_HOURS',
    default: '24',
    description: 'Longest accepted lifetime of ID tokens in hours, from `iat` to `exp`; at most 10000.',
  },
  adminEmail: {
    name: 'auth.adminEmail',
    kind: 'text',
    variable: 'OTPD_ADMIN_EMAIL',
    default: 'none',
    description: 'E-mail address of the first account, created at start; needs OTPD_ADMIN_PASSWORD_FILE.',
  },
  adminPasswordFile: {
    name: 'auth.adminPasswordFile',
    kind: 'text',
    variable: 'OTPD_ADMIN_PASSWORD_FILE',
    default: 'none',
    description: 'File that contains the password of the first account.',
  },
  webhookAllow: {
    name: 'webhooks.allow',
    kind: 'list',
    variable: 'OTPD_WEBHOOK_ALLOW',
    default: 'none',
    description: 'Private hosts, addresses or CIDRs that webhooks may reach, also over http.',
  },
  webhookEndpointsMax: {
    name: 'webhooks.endpointsMax',
    kind: 'integer',
    variable: 'OTPD_WEBHOOK_ENDPOINTS_MAX',
    default: '20',
    description: 'Maximum number of webhook endpoints per application.',
  },
  pricesCurrency: {
    name: 'prices.currency',
    kind: 'text',
    variable: 'OTPD_PRICES_CURRENCY',
    default: 'none: costs are not counted',
    description: 'Currency of all prices, as ISO 4217 code such as `EUR`.',
  },
  ...limitSettings,
  ...guardSettings,
  metricsListen: {
    name: 'metrics.listen',
    kind: 'text',
    variable: 'OTPD_METRICS_LISTEN',
    default: 'off',
    description: 'HOST:PORT that serves `/metrics` to Prometheus without a login, such as 127.0.0.1:9464.',
  },
  retentionPhoneDays: {
    name: 'retention.phoneDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_PHONE_DAYS',
    default: '30',
    description: 'Days after which phone numbers are pseudonymized; 0 means never.',
  },
  retentionLogDays: {
    name: 'retention.logDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_LOG_DAYS',
    default: '90',
    description: 'Days after which log entries and webhook deliveries are deleted; 0 means never.',
  },
  retentionRequestDays: {
    name: 'retention.requestDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_REQUEST_DAYS',
    default: '0',
    description: 'Days after which OTP requests are deleted, while counts stay; 0 means never.',
  },
  retentionAuditDays: {
    name: 'retention.auditDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_AUDIT_DAYS',
    default: '365',
    description: 'Days after which audit trail entries are deleted; 0 means never.',
  },
  ...backupSettings,
  ...proofSettings,
} as const satisfies Record<string, Setting>

export type SettingId = keyof typeof settings

export const settingList: readonly Setting[] = Object.values(settings)

/** Settings that the configuration file can have. */
export const fileKeys: readonly string[] = settingList
  .filter(({ notInFile }) => !notInFile)
  .map(({ name }) => name)
