import { guardSettings } from './guard-settings.ts'

/** Every setting of the server as data: `otpd config show` and the README's table are made from it. */

export type Setting = {
  /** As `otpd config show` prints it, and where it stands in the file unless `notInFile`. */
  name: string
  /** `text` stands for one word of any kind; a `list` is comma separated, an array of strings in the file. */
  kind: 'text' | 'integer' | 'switch' | 'list'
  variable: string
  flag?: string
  notInFile?: true
  secret?: true
  /** In words, for people. */
  default: string
  description: string
}

export const settings = {
  config: {
    name: 'config',
    kind: 'text',
    variable: 'OTPD_CONFIG',
    flag: '--config',
    notInFile: true,
    default: '/etc/otpd/otpd.toml, then $XDG_CONFIG_HOME/otpd/server.toml',
    description: 'The configuration file (TOML). One that is named must exist.',
  },
  listen: {
    name: 'server.listen',
    kind: 'text',
    variable: 'OTPD_LISTEN',
    flag: '--listen',
    default: '127.0.0.1:8080',
    description: 'HOST:PORT to listen on. Port 0 takes any free one; an IPv6 address stands in brackets.',
  },
  dev: {
    name: 'dev',
    kind: 'switch',
    variable: 'OTPD_DEV',
    flag: '--dev',
    notInFile: true,
    default: 'off',
    description: 'Keep everything in a temporary folder, and listen on loopback only.',
  },
  dataDir: {
    name: 'server.dataDir',
    kind: 'text',
    variable: 'OTPD_DATA_DIR',
    flag: '--data-dir',
    default: '$STATE_DIRECTORY, /var/lib/otpd for root, otherwise $XDG_DATA_HOME/otpd',
    description: 'The folder with the database, the master key and the backups.',
  },
  publicUrl: {
    name: 'server.publicUrl',
    kind: 'text',
    variable: 'OTPD_PUBLIC_URL',
    flag: '--public-url',
    default: 'the listening address',
    description: 'The address under which clients reach this server, as it stands in tokens and documents.',
  },
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
    description: '`text` for people or `json`, one object a line.',
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
    default: 'master.key in the data directory, made at the first start',
    description: 'The key that all others derive from: 32 bytes in hexadecimal or base64.',
  },
  masterKeyFile: {
    name: 'server.masterKeyFile',
    kind: 'text',
    variable: 'OTPD_MASTER_KEY_FILE',
    default: 'none',
    description: 'A file with the master key, instead of OTPD_MASTER_KEY.',
  },
  trustedProxies: {
    name: 'server.trustedProxies',
    kind: 'list',
    variable: 'OTPD_TRUSTED_PROXIES',
    default: 'none',
    description: 'Addresses or CIDRs of the proxies whose X-Forwarded-For is believed.',
  },
  corsOrigins: {
    name: 'server.corsOrigins',
    kind: 'list',
    variable: 'OTPD_CORS_ORIGINS',
    default: 'none',
    description: 'Origins whose pages may call the console routes, each exactly as a browser sends it.',
  },
  oidcIssuer: {
    name: 'auth.oidcIssuer',
    kind: 'text',
    variable: 'OTPD_OIDC_ISSUER',
    default: 'the built-in provider',
    description: 'The OpenID Connect provider whose ID tokens open the console: https, or http on loopback.',
  },
  oidcAudience: {
    name: 'auth.oidcAudience',
    kind: 'list',
    variable: 'OTPD_OIDC_AUDIENCE',
    default: 'none; required with an issuer',
    description: 'The audiences that a token may be meant for.',
  },
  oidcJwksUri: {
    name: 'auth.oidcJwksUri',
    kind: 'text',
    variable: 'OTPD_OIDC_JWKS_URI',
    default: 'from the discovery document of the issuer',
    description: "Where the issuer's public keys are.",
  },
  oidcClientId: {
    name: 'auth.oidcClientId',
    kind: 'text',
    variable: 'OTPD_OIDC_CLIENT_ID',
    default: 'none',
    description: 'The client ID with which `otpd login` goes to the issuer.',
  },
  signup: {
    name: 'auth.signup',
    kind: 'text',
    variable: 'OTPD_SIGNUP',
    default: 'open with an external provider, closed with the built-in one',
    description:
      '`open` makes an account for everyone who can log in, `closed` admits whom the operator made.',
  },
  adminEmail: {
    name: 'auth.adminEmail',
    kind: 'text',
    variable: 'OTPD_ADMIN_EMAIL',
    default: 'none',
    description: 'Makes the first account at start, with OTPD_ADMIN_PASSWORD_FILE.',
  },
  adminPasswordFile: {
    name: 'auth.adminPasswordFile',
    kind: 'text',
    variable: 'OTPD_ADMIN_PASSWORD_FILE',
    default: 'none',
    description: 'A file with the password of the first account.',
  },
  webhookAllow: {
    name: 'webhooks.allow',
    kind: 'list',
    variable: 'OTPD_WEBHOOK_ALLOW',
    default: 'none',
    description: 'Hosts, addresses or CIDRs that webhooks may reach though they are private, also by http.',
  },
  webhookEndpointsMax: {
    name: 'webhooks.endpointsMax',
    kind: 'integer',
    variable: 'OTPD_WEBHOOK_ENDPOINTS_MAX',
    default: '20',
    description: 'How many webhook endpoints an application may have.',
  },
  sendPerMinute: {
    name: 'limits.sendPerMinute',
    kind: 'integer',
    variable: 'OTPD_SEND_PER_MINUTE',
    default: "the plan's",
    description: 'Sends per minute and application on every plan, up to 10000; 0 is no limit.',
  },
  verifyPerMinute: {
    name: 'limits.verifyPerMinute',
    kind: 'integer',
    variable: 'OTPD_VERIFY_PER_MINUTE',
    default: "the plan's",
    description: 'Verifications per minute and application on every plan, up to 10000; 0 is no limit.',
  },
  phoneCheckBudget: {
    name: 'limits.phoneCheckBudget',
    kind: 'integer',
    variable: 'OTPD_PHONE_CHECK_BUDGET',
    default: '25',
    description:
      'Failed checks that a phone has with an application, refilled by one an hour; 0 turns it off.',
  },
  phoneSendBudget: {
    name: 'limits.phoneSendBudget',
    kind: 'text',
    variable: 'OTPD_PHONE_SEND_BUDGET',
    default: 'monitor',
    description: 'Sends to one phone (5 in 10 minutes, 20 a day): `off`, `monitor` or `enforce`.',
  },
  ...guardSettings,
  metricsListen: {
    name: 'metrics.listen',
    kind: 'text',
    variable: 'OTPD_METRICS_LISTEN',
    default: 'off',
    description:
      'HOST:PORT on which Prometheus finds `/metrics`, such as 127.0.0.1:9464. It asks for no login.',
  },
  retentionPhoneDays: {
    name: 'retention.phoneDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_PHONE_DAYS',
    default: '30',
    description: 'Days after which a pseudonym takes the place of a phone number; 0 is never.',
  },
  retentionLogDays: {
    name: 'retention.logDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_LOG_DAYS',
    default: '90',
    description: 'Days after which log entries and webhook deliveries go; 0 is never.',
  },
  retentionRequestDays: {
    name: 'retention.requestDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_REQUEST_DAYS',
    default: '0',
    description: 'Days after which OTP requests go from the lists; 0 is never. Counts stay.',
  },
  retentionAuditDays: {
    name: 'retention.auditDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_AUDIT_DAYS',
    default: '365',
    description: 'Days after which entries of the audit trail go; 0 is never.',
  },
} as const satisfies Record<string, Setting>

export type SettingId = keyof typeof settings

export const settingList: readonly Setting[] = Object.values(settings)
