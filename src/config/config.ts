import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { readAlerts } from './alerts.ts'
import { readAdmin, readMasterKey, readOidc, reportProviderSetting, type OidcConfig } from './auth.ts'
import { readBackup, type BackupConfig, type S3Secrets } from './backup.ts'
import {
  readDatabase,
  readNode,
  requireSharedSettings,
  type ConfigUse,
  type DatabaseConfig,
} from './database.ts'
import { readDelivery } from './delivery.ts'
import { readGuard } from './guard.ts'
import { readConfigFile, readDataDir } from './paths.ts'
import { ratePerMinuteMax, readPlans } from './plans.ts'
import { readProofs, type ProofConfig } from './proofs.ts'
import { readRetention } from './retention.ts'
import { readTemplates } from './templates.ts'
import { readDomains, readTls, type TlsConfig } from './tls.ts'
import {
  createReader,
  type ConfigInput,
  type Flags,
  type Problem,
  type Reader,
  type SettingValue,
} from './reader.ts'
import {
  isLoopbackListen,
  parseChoice,
  parseChoices,
  parseCidrs,
  parseInteger,
  parseListen,
  parseOrigins,
  parsePublicUrl,
  parseSwitch,
  parseWebhookAllow,
  showListen,
} from './values.ts'
import type { ListenAddress, WebhookAllow } from './values.ts'
import type { AlertDestination } from '../domain/model/alert.ts'
import { facades, type Facade } from '../domain/model/compat.ts'
import type { DeliverySettings } from '../domain/model/delivery.ts'
import type { MessageTemplates } from '../domain/model/message-settings.ts'
import type { GuardSettings } from '../domain/guard/settings.ts'
import type { Plans } from '../domain/model/plans.ts'
import type { RetentionSettings } from '../domain/upkeep/retention.ts'
import { readRegularFile } from '../shared/regular-file.ts'

export type { ConfigUse, DatabaseConfig } from './database.ts'
export type { ConfigInput, Flags, SettingValue } from './reader.ts'
export { settingList } from './settings.ts'

export type Config = {
  /** The file that was read, if any. */
  configFile: string | null
  listen: ListenAddress
  /** Null in development mode, when the server creates a temporary folder and removes it, and with `database`. */
  dataDir: string | null
  /** PostgreSQL database that nodes share; null: SQLite in the data directory. Holds a password: never printed or logged. */
  database: DatabaseConfig | null
  /** Name of this node. */
  node: string
  /** Without a trailing slash. Null: `http://` or `https://`, and the bound address. */
  publicUrl: string | null
  /** Null: plain HTTP. */
  tls: TlsConfig | null
  /** How long a server that shuts down still takes calls, so that a load balancer notices. */
  drainSeconds: number
  dev: boolean
  /** False: refuses to start on an older database. */
  migrate: boolean
  log: { format: 'text' | 'json'; level: 'debug' | 'info' | 'warn' | 'error' }
  /** Null: the built-in identity provider. */
  oidc: OidcConfig | null
  signup: 'open' | 'closed'
  /** Developers without TOTP can only enable it. */
  requireTotp: boolean
  /** Longest accepted lifetime of ID tokens. */
  tokenMaxHours: number
  /** E-mail address of the first account, created at start; its password is in `secrets`. */
  adminEmail: string | null
  /** CIDRs. */
  trustedProxies: string[]
  corsOrigins: string[]
  /** APIs of other services that are answered too. */
  compat: Facade[]
  webhooks: { allow: WebhookAllow; endpointsMax: number }
  budgets: {
    /** Failed checks per application and phone; 0 disables the limit. */
    phoneCheckFailures: number
    phoneSend: 'off' | 'monitor' | 'enforce'
  }
  guard: GuardSettings
  proofs: ProofConfig
  retention: RetentionSettings
  backup: BackupConfig
  /** Address of the Prometheus endpoint; null disables metrics. */
  metricsListen: ListenAddress | null
  /** Rates that are set for the whole installation are already applied to every plan. */
  plans: Plans
  /** Providers and routes. Includes the providers' secrets, so it is never printed or logged. */
  delivery: DeliverySettings
  /** Destinations of alerts to the operator. Includes secrets, so it is never printed or logged. */
  alerts: AlertDestination[]
  /** Custom message texts; they replace or extend the built-in ones. */
  templates: MessageTemplates
  /** Never printed, never logged. */
  secrets: {
    /** 32 bytes. Null: `master.key` in the data directory. */
    masterKey: Uint8Array | null
    /** Where the master key comes from, as `otpd doctor` shows it. Null: the key file of the data directory. */
    masterKeySource: string | null
    adminPassword: string | null
    /** Null without credentials for an S3 service. */
    s3: S3Secrets | null
  }
}

export type LoadedConfig = {
  /** Null if there is any problem. */
  config: Config | null
  /** Every problem found, not only the first. */
  problems: Problem[]
  /** Settings that are ignored, or will be a problem. They keep nothing from starting. */
  warnings: Problem[]
  /** Every setting with its origin, secrets masked; present even if there are problems. */
  settings: SettingValue[]
}

/** Input of `loadConfig` taken from this machine. @param process its environment, and where relative paths begin */
export function processInput(
  flags: Flags,
  { env, workingDirectory }: { env: ConfigInput['env']; workingDirectory: string },
): ConfigInput {
  return {
    flags,
    env,
    readFile: readRegularFile,
    readMode: (path) => statSync(path).mode,
    cwd: workingDirectory,
    isRoot: process.getuid?.() === 0,
    hostName: hostname(),
    now: Date.now,
  }
}

/**
 * Reads the configuration. Precedence: flag, `OTPD_*` variable, file, default. Never throws; problems are part of the
 * result.
 *
 * @param options.ignoresDatabase leaves out the PostgreSQL database, for the command that moves a data directory into it
 * @param options.use what needs the settings that nodes share: only a server needs a public URL, and migrations no key
 */
export function loadConfig(
  input: ConfigInput,
  options: { ignoresDatabase?: boolean; use?: ConfigUse } = {},
): LoadedConfig {
  const reader = createReader(input)
  reader.reportUnknownVariables()
  const configFile = readConfigFile(reader, input)
  const { read, report } = reader

  const domains = readDomains(reader)
  const [domain] = domains.value
  const byDomain = domain === undefined || domains.source === null ? {} : { defaultOrigin: domains.source }
  const defaultListen =
    domain === undefined ? { host: '127.0.0.1', port: 8080 } : { host: '0.0.0.0', port: 443 }
  const listen = read('listen', parseListen, defaultListen, { show: showListen, ...byDomain })
  const drainSeconds = read('drainSeconds', parseInteger(0, 60), 0)
  const dev = read('dev', parseSwitch, false)
  const database = options.ignoresDatabase ? { config: null, source: null } : readDatabase(reader, input)
  const node = readNode(reader, input)
  const dataDir = readDataDir(reader, input, dev, database.source)
  if (dev.value && !isLoopbackListen(listen.value.host)) {
    report(
      listen.source ?? byDomain.defaultOrigin ?? 'default',
      'Development mode only listens on loopback addresses.',
      `Listen on 127.0.0.1, or remove ${dev.source ?? '--dev'}.`,
    )
  }
  const defaultUrl = domain === undefined ? null : `https://${domain}`
  const publicUrl = read<string | null>('publicUrl', parsePublicUrl, defaultUrl, byDomain)
  const use = options.use ?? 'serve'
  const tls = readTls(reader, input, { domains, databaseSource: database.source, use })
  const noMigrate = read('noMigrate', parseSwitch, false)
  const logFormat = read('logFormat', parseChoice('text', 'json'), 'text')
  const logLevel = read('logLevel', parseChoice('debug', 'info', 'warn', 'error'), 'info')
  const masterKey = readMasterKey(reader, input)
  const trustedProxies = read('trustedProxies', parseCidrs, [])
  const corsOrigins = read('corsOrigins', parseOrigins, [])
  const compat = read('compat', parseChoices(...facades), [])
  const oidc = readOidc(reader)
  const signup = read('signup', parseChoice('open', 'closed'), 'closed')
  requireSharedSettings(reader, database.source, use, {
    masterKeySource: masterKey.source,
    publicUrl: publicUrl.value,
    isBuiltInIssuer: oidc === null,
  })
  const requireTotp = read('requireTotp', parseSwitch, false)
  if (requireTotp.value && oidc) reportProviderSetting(reader, requireTotp)
  const tokenMaxHours = read('tokenMaxHours', parseInteger(1, 10_000), 24)
  const admin = readAdmin(reader, input)
  const allow = read('webhookAllow', parseWebhookAllow, { hosts: [], cidrs: [] }, { show: showAllow })
  const endpointsMax = read('webhookEndpointsMax', parseInteger(1, 10_000), 20)
  const delivery = readDelivery(reader, input, configFile.entries, use)
  const parseRate = parseInteger(0, ratePerMinuteMax)
  const sendPerMinute = read<number | null>('sendPerMinute', parseRate, null)
  const verifyPerMinute = read<number | null>('verifyPerMinute', parseRate, null)
  const consolePerMinute = read<number | null>('consolePerMinute', parseRate, null)
  const lookupsPerMinute = read<number | null>('lookupsPerMinute', parseRate, null)
  // NIST SP 800-63B §5.2.2 allows no more than 100 failures in a row, so a larger budget could never be used up.
  const phoneCheckBudget = read('phoneCheckBudget', parseInteger(0, 100), 25)
  // Without a provider no message costs anything, and a newcomer's first minute must not be refused.
  const defaultMode = delivery.providers.length > 0 ? 'enforce' : 'monitor'
  const parseMode = parseChoice('off', 'monitor', 'enforce')
  const phoneSendBudget = read('phoneSendBudget', parseMode, defaultMode)
  const guard = readGuard(reader, input, use, { defaultMode, currency: delivery.currency })
  const metricsListen = readMetricsListen(reader)
  const retention = readRetention(reader)
  const backup = readBackup(reader, input, { databaseSource: database.source, use })

  const config: Config = {
    configFile: configFile.path,
    listen: listen.value,
    dataDir,
    database: database.config,
    node,
    publicUrl: publicUrl.value,
    tls,
    drainSeconds: drainSeconds.value,
    dev: dev.value,
    migrate: !noMigrate.value,
    log: { format: logFormat.value, level: logLevel.value },
    oidc,
    signup: signup.value,
    requireTotp: requireTotp.value,
    tokenMaxHours: tokenMaxHours.value,
    adminEmail: admin.email,
    trustedProxies: trustedProxies.value,
    corsOrigins: corsOrigins.value,
    compat: compat.value,
    webhooks: { allow: allow.value, endpointsMax: endpointsMax.value },
    budgets: { phoneCheckFailures: phoneCheckBudget.value, phoneSend: phoneSendBudget.value },
    guard,
    retention,
    backup: backup.config,
    metricsListen,
    proofs: readProofs(reader),
    plans: readPlans(reader, configFile.entries, {
      sendPerMinute,
      verifyPerMinute,
      consolePerMinute,
      lookupsPerMinute,
    }),
    delivery,
    templates: readTemplates(reader, configFile.entries),
    alerts: readAlerts(reader, input, configFile.entries, use),
    secrets: {
      masterKey: masterKey.key,
      masterKeySource: masterKey.source,
      adminPassword: admin.password,
      s3: backup.secrets,
    },
  }
  return toLoadedConfig(reader, config)
}

/** Puts the problems of a file in the order of its lines, after those of flags and variables. */
function toLoadedConfig({ problems, warnings, values }: Reader, config: Config): LoadedConfig {
  return {
    config: problems.length === 0 ? config : null,
    problems: problems.toSorted((a, b) => lineNumber(a) - lineNumber(b)),
    warnings,
    settings: values,
  }
}

/** Returns the line of the file that a problem is in; 0 for those of flags and variables. */
const lineNumber = ({ source }: Problem) => Number(/:(\d+)/.exec(source)?.[1] ?? 0)

/** Reads the address of the Prometheus endpoint; null disables metrics. */
function readMetricsListen(reader: Reader) {
  const showOrNull = (address: ListenAddress | null) => (address === null ? null : showListen(address))
  return reader.read<ListenAddress | null>('metricsListen', parseListen, null, { show: showOrNull }).value
}

const showAllow = ({ hosts, cidrs }: WebhookAllow) => [...hosts, ...cidrs]
