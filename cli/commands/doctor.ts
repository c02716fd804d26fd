import { join } from 'node:path'
import type { CliCommand } from './command.ts'
import type { LoadedConfig } from '../../src/config/config.ts'
import type {
  BackupInspection,
  HostCertificate,
  HostInspection,
  SharedInspection,
} from '../../src/host/host.ts'
import type { Context } from '../context.ts'
import { alertChecks } from '../doctor/alerts.ts'
import { backupChecks, missingBackupChecks } from '../doctor/backups.ts'
import { certificateChecks } from '../../src/shared/certificate-checks.ts'
import { fault, ok, type Check, warning } from '../../src/shared/check.ts'
import { checksText } from '../doctor/checks-text.ts'
import { addressChecks, configurationChecks, webhookChecks } from '../doctor/config.ts'
import { damagedLogChecks, logDamageChecks } from '../doctor/damaged-logs.ts'
import { keptKeyChecks } from '../doctor/kept-keys.ts'
import { deliveryChecks } from '../doctor/delivery.ts'
import { dataDirChecks } from '../doctor/data-dir.ts'
import { serverChecks } from '../doctor/server.ts'
import { sharedDatabaseChecks } from '../doctor/shared-database.ts'
import { programCheck, terminalCheck } from '../doctor/terminal.ts'
import type { OnStep } from '../../src/shared/progress.ts'
import { CliError, exitCodes } from '../terminal/errors.ts'
import { withProgress } from '../terminal/progress.ts'
import { addHostFlags, type HostFlags } from '../host/commands.ts'
import type { Io } from '../terminal/io.ts'
import { isLoopback } from '../../src/shared/loopback.ts'
import { loadServerConfig } from '../host/config.ts'
import { describeRunning, findRunning, listEdits, type RunningServer } from '../host/running.ts'
import { shortPath } from '../terminal/text.ts'
import { version } from '../version.ts'

/** Registers the doctor command. */
export function addDoctorCommand(program: CliCommand) {
  addHostFlags(
    program
      .command('doctor')
      .description('check server, configuration, data, login and live sending for problems'),
  )
    .option('--deep', 'also compare every index of the database with its table; reads the whole file')
    .examples('otpd doctor', 'otpd doctor --deep', 'otpd doctor --json')
    .run(async (context, flags: HostFlags & { deep?: true }) => {
      const { io, output } = context
      const isDeep = flags.deep === true
      const { loaded, running } = await loadAndFindServer(io, flags)
      const connection = tryConnect(context, running?.url)
      const localServer = await withProgress(context, (onStep) =>
        inspectLocalServer(loaded, running, connection, {
          isDeep,
          // Scripts wait for a deep check only.
          ...((isDeep || !output.json) && { onStep }),
        }),
      )
      const found = [
        ...localServerChecks(context, localServer),
        ...('checks' in connection
          ? connection.checks
          : await serverChecks(context, connection, { isHeld: isServerRunning(localServer) })),
        ...(await liveSendingChecks(context, localServer)),
        ...(await operatorAlertChecks(localServer)),
        programCheck(io),
        terminalCheck(io, output),
      ]
      const checks = found.map((check) => ({
        ...check,
        remedy: check.remedy && output.complete(check.remedy),
      }))
      const isHealthy = checks.every(({ status }) => status !== 'fault')
      output.printData({ checks, ok: isHealthy }, () => checksText(checks, output.paint, output.columns()))
      return isHealthy ? exitCodes.done : exitCodes.negative
    })
}

/**
 * Loads the configuration as a start from this shell would, or without the providers' secrets, if only they are not in this
 * shell and a server runs that has them.
 */
async function loadAndFindServer(io: Io, flags: HostFlags) {
  const loaded = await loadServerConfig(io, flags)
  if (loaded.config !== null) return { loaded, running: await findRunning(loaded) }
  const withoutSecrets = await loadServerConfig(io, flags, 'host command')
  const running = await findRunning(withoutSecrets)
  return running === null ? { loaded, running } : { loaded: withoutSecrets, running }
}

/** Connects to the server; returns a failed check if the credentials file cannot be read. */
function tryConnect(
  { connect: open }: Context,
  localServer: string | undefined,
): ReturnType<Context['connect']> | { checks: Check[] } {
  try {
    return open(undefined, { localServer })
  } catch (error) {
    if (!(error instanceof CliError) || !error.code.startsWith('CREDENTIALS_')) throw error
    return { checks: [fault('login', error.message.replace(/\.$/, ''), error.hints[0] ?? 'otpd login')] }
  }
}

type LocalServer = {
  loaded: LoadedConfig
  /** Null if no server runs on the data directory. */
  running: RunningServer | null
  dataDir: string | null
  inspection: HostInspection | null
  /** Null without a data directory or a valid configuration. */
  backups: BackupInspection | null
  /** Replaced master keys and damaged logs, which the data directory keeps. */
  keptFileChecks: Check[]
  /** Null without HTTPS. */
  certificate: HostCertificate | null
  /** Null if the database is not in PostgreSQL. */
  shared: SharedInspection | null
}

const isServerRunning = (localServer: LocalServer | null) =>
  localServer?.inspection?.state === 'accessible' && localServer.inspection.isHeld

/** Returns what the database says about live sending; null if it cannot be read. */
function sendingFacts(localServer: LocalServer) {
  const { inspection, shared } = localServer
  if (shared) return shared.state === 'open' ? shared : null
  if (inspection?.state !== 'accessible' || inspection.database.state !== 'readable') return null
  // A stopped server may have left stale entries.
  return { ...inspection.database, ...(!inspection.isHeld && { openCircuits: [] }) }
}

/**
 * Inspects the server's configuration and data directory on this machine, without creating anything.
 *
 * @returns null if only the client is on this machine
 */
async function inspectLocalServer(
  loaded: LoadedConfig,
  running: RunningServer | null,
  connection: ReturnType<typeof tryConnect>,
  options: { isDeep: boolean; onStep?: OnStep },
): Promise<LocalServer | null> {
  const { config, settings } = loaded
  const dataDirSetting = settings.find(({ setting }) => setting === 'server.dataDir')
  const configuredDataDir =
    typeof dataDirSetting?.value === 'string' && dataDirSetting.value.startsWith('/')
      ? dataDirSetting.value
      : null
  const dataDir = config === null ? configuredDataDir : config.dataDir
  const { findLogDamage, inspectBackups, inspectCertificate, inspectHost, ...host } =
    await import('../../src/server/bundle.ts')
  const { inspectKeptKeys, inspectShared, listDamagedLogs } = host
  const served = running?.config ?? config
  const certificate = served && inspectCertificate(served)
  if (config?.database) {
    const shared = await inspectShared({ ...config, database: config.database })
    return {
      loaded,
      running,
      dataDir: null,
      inspection: null,
      backups: null,
      keptFileChecks: [],
      certificate,
      shared,
    }
  }
  const inspection = dataDir === null ? null : inspectHost(dataDir, config, options)
  const backups = dataDir === null || served === null ? null : inspectBackups(served, dataDir)
  const isReadable = dataDir !== null && inspection?.state === 'accessible'
  const keptFileChecks = isReadable
    ? [
        ...(inspection.isHeld ? [] : logDamageChecks(findLogDamage(dataDir))),
        ...damagedLogChecks(listDamagedLogs(dataDir)),
        ...(served === null ? [] : keptKeyChecks(inspectKeptKeys(served, dataDir))),
      ]
    : []
  const isServerLocal = !('server' in connection) || isLoopback(new URL(connection.server.url).hostname)
  const isConfigured = settings.some(({ origin }) => origin !== 'default')
  const isPresent = inspection !== null && inspection.state !== 'missing'
  return isServerLocal || isConfigured || isPresent
    ? { loaded, running, dataDir, inspection, backups, keptFileChecks, certificate, shared: null }
    : null
}

function localServerChecks({ io }: Context, localServer: LocalServer | null): Check[] {
  if (localServer === null)
    return [ok('host', 'the server is on another machine; its files and settings are not checked')]
  const { loaded, running, dataDir, inspection, backups, keptFileChecks, certificate, shared } = localServer
  // The settings of a running server are what works; this shell's are those of the next start from here.
  const config = running?.config ?? loaded.config
  const dataDirInfo = dataDir !== null && {
    dataDir,
    displayPath: shortPath(dataDir, io.homeDirectory),
    migrate: config?.migrate ?? true,
    masterKeySource: config?.secrets.masterKeySource ?? null,
    isGuess:
      config === null &&
      loaded.settings.some(({ setting, origin }) => setting === 'server.dataDir' && origin === 'default'),
  }
  return [
    ...(backups && hasDatabase(inspection) ? missingBackupChecks(backups, io.now()) : []),
    ...configurationChecks(loaded),
    ...(running === null ? [] : [runningCheck(running), ...editChecks(running)]),
    ...(config === null
      ? []
      : [
          ...addressChecks(config),
          ...certificateChecks(config, certificate, io.now()),
          ...webhookChecks(config),
        ]),
    ...(dataDirInfo && inspection ? dataDirChecks(inspection, dataDirInfo) : []),
    ...(backups ? backupChecks(backups, io.now()) : []),
    ...keptFileChecks,
    ...(shared
      ? sharedDatabaseChecks(shared, {
          masterKeySource: config?.secrets.masterKeySource ?? null,
          nowMs: io.now(),
        })
      : []),
  ]
}

const hasDatabase = (inspection: HostInspection | null) =>
  inspection?.state === 'accessible' && inspection.database.state !== 'missing'

/** Says which settings the checks below are about, and what a start from this shell would change. */
function runningCheck(running: RunningServer): Check {
  const names = running.differences.map(({ setting }) => setting)
  const difference =
    names.length === 0 ? 'this shell has the same' : `this shell has other ${names.join(', ')}`
  return ok('settings', `of ${describeRunning(running)}; ${difference}`)
}

/** Warns about settings that were changed in the file and not applied. */
const editChecks = (running: RunningServer): Check[] =>
  listEdits(running).map(({ names, remedy }) =>
    warning(
      'settings',
      `changed in the file since the server started: ${names}`,
      `${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}`,
    ),
  )

/** Checks live sending, if the configuration is valid; for an invalid one the results would mean nothing. */
async function liveSendingChecks({ io }: Context, localServer: LocalServer | null): Promise<Check[]> {
  const config = localServer?.running?.config ?? localServer?.loaded.config ?? null
  if (localServer === null || config === null) return []
  const { openProviders, tryChallenge } = await import('../../src/server/bundle.ts')
  // A running server does not tell its secrets.
  const service = localServer.loaded.config?.guard.challenge
  const isCalled = service && service.kind !== 'altcha' && service.secret !== ''
  const challenge = isCalled ? { fault: await tryChallenge(service, version) } : null
  const openedProviders = openProviders(config, version)
  try {
    const facts = sendingFacts(localServer)
    return deliveryChecks({
      config,
      guardAlerts: facts?.guardAlerts ?? [],
      verifiedCountries: facts?.verifiedCountries ?? [],
      sendCounts: facts?.sendCounts ?? { sends: 0, untold: 0 },
      providers: localServer.running?.providers ?? (await openedProviders.list()),
      openCircuits: facts?.openCircuits ?? [],
      challenge,
      nowMs: io.now(),
      configFile: shortPath(config.configFile ?? defaultConfigPath(io), io.homeDirectory),
    })
  } finally {
    openedProviders.close()
  }
}

/** Checks the alerts to the operator. */
async function operatorAlertChecks(localServer: LocalServer | null): Promise<Check[]> {
  const config = localServer?.running?.config ?? localServer?.loaded.config ?? null
  if (config === null || config.alerts.length === 0) return []
  const { openHost } = await import('../../src/server/bundle.ts')
  // Other checks report a database that cannot be read.
  const host = await openHost({ config, access: 'read' }).catch(() => null)
  try {
    return alertChecks(config, host && (await host.listAlerts()))
  } finally {
    await host?.close()
  }
}

/** Path of the configuration file that a server of this user would read first. */
const defaultConfigPath = ({ env, homeDirectory }: Io) =>
  process.getuid?.() === 0
    ? '/etc/otpd/otpd.toml'
    : join(env.XDG_CONFIG_HOME || join(homeDirectory, '.config'), 'otpd', 'server.toml')
