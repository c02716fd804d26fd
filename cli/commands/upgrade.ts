import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import { addHostFlags, type HostFlags } from '../host/commands.ts'
import { loadServerConfig } from '../host/config.ts'
import { findRunning, type RunningServer } from '../host/running.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import { withProgress } from '../terminal/progress.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable } from '../terminal/text.ts'
import { rewriteExtras } from '../upgrade/extras.ts'
import { findInstallation, upgradeCommand } from '../upgrade/installation.ts'
import { downloadProgram, readLatest, type SignaturePolicy } from '../upgrade/release.ts'
import { replaceProgram, writeNewProgram } from '../upgrade/replace.ts'
import { findService } from '../upgrade/service.ts'
import { openReleaseSource, type ReleaseSource } from '../upgrade/source.ts'
import { backUp, checkData, versionOf, type ServerPlace } from '../upgrade/steps.ts'
import { build, version } from '../version.ts'

type UpgradeFlags = HostFlags & { check?: true; from?: string; allowUnsigned?: true; backup: boolean }

/** Registers `otpd upgrade`. */
export function addUpgradeCommand(program: CliCommand) {
  addHostFlags(
    program
      .command('upgrade')
      .description(
        'replace this program by the newest release: checks its signature, backs up the data, and restarts the service',
      )
      .option('--check', 'only say whether there is a newer release; exit code 8 if there is')
      .option('--from <place>', 'folder of releases: a URL, or a path (OTPD_DOWNLOAD_URL)')
      .option('--allow-unsigned', 'take a release whose signature cannot be checked')
      .option('--no-backup', 'without a backup of the data first'),
  )
    .examples('otpd upgrade --check', 'otpd upgrade', 'otpd upgrade --from /mnt/otpd-releases')
    .run(async (context, flags: UpgradeFlags) => {
      const { io, output } = context
      const from = flags.from ?? (io.env['OTPD_DOWNLOAD_URL'] || build.releaseUrl)
      if (!from)
        throw usageError(
          'There is no folder of releases.',
          'Name one with --from URL, or in OTPD_DOWNLOAD_URL.',
        )
      const source = openReleaseSource(from, io.workingDirectory)
      const policy = { key: build.releaseKey, allowUnsigned: flags.allowUnsigned === true }
      if (!flags.check) return upgrade(context, source, policy, flags)
      const latest = await readLatest(source, policy)
      const order = Bun.semver.order(latest, version)
      const isNewer = order > 0
      output.printData({ version, latest, isNewer }, () =>
        isNewer
          ? `otpd ${printable(latest)} can be installed; this is ${version}.`
          : order === 0
            ? `otpd ${version} is the newest.`
            : `The newest release in ${printable(source.place)} is ${printable(latest)}, older than this otpd ${version}.`,
      )
      if (isNewer)
        output.suggestNext(
          build.target === null
            ? 'git pull'
            : upgradeCommand(process.execPath, ownCommand(flags, flags.from)),
        )
      return isNewer ? exitCodes.negative : exitCodes.done
    })
}

/** Returns the command that upgrades with what was given to this one. */
const ownCommand = ({ allowUnsigned, backup }: UpgradeFlags, from: string | undefined): string =>
  [
    'otpd upgrade',
    ...(from ? ['--from', shellWord(from)] : []),
    ...(allowUnsigned ? ['--allow-unsigned'] : []),
    ...(backup ? [] : ['--no-backup']),
  ].join(' ')

/** Replaces the program. Until the last step, a rename, the old one stays as it is and goes on serving. */
async function upgrade(
  context: Context,
  source: ReleaseSource,
  policy: SignaturePolicy,
  flags: UpgradeFlags,
) {
  const { output } = context
  if (build.target === null)
    throw new CliError(exitCodes.refused, 'MANAGED_ELSEWHERE', 'This otpd runs from its sources.', {
      hints: ['Upgrade it there: git pull'],
    })
  // sudo keeps no OTPD_DOWNLOAD_URL.
  const from = flags.from ?? context.io.env['OTPD_DOWNLOAD_URL']
  const installation = findInstallation(process.execPath, ownCommand(flags, from))
  const latest = await readLatest(source, policy)
  const order = Bun.semver.order(latest, version)
  if (order < 0)
    throw new CliError(
      exitCodes.refused,
      'RELEASE_OLDER',
      `The newest release in ${source.place} is ${latest}, and this is ${version}.`,
      { hints: ['Nothing was changed. install.sh --version installs an older one.'] },
    )
  if (order === 0) {
    output.printData({ version, latest, isUpgraded: false }, () => `otpd ${version} is the newest.`)
    return exitCodes.done
  }
  const { target } = build
  const program = await withProgress(context, (onStep) =>
    downloadProgram(source, { version: latest, target, policy, onStep }),
  )
  const { place, running, migratesAtStart } = await findServer(context, flags)
  const newPath = writeNewProgram(installation, program)
  try {
    if (versionOf(newPath) !== latest)
      throw new CliError(
        exitCodes.refused,
        'RELEASE_DAMAGED',
        'The new program does not run on this machine.',
        {
          hints: ['Nothing was changed.'],
        },
      )
    const pending = place === null ? [] : checkData(newPath, place)
    const backup =
      place?.dataDir && flags.backup
        ? await withProgress(context, async (onStep) => {
            onStep({ step: 'backing up the data' })
            return backUp(installation.path, place)
          })
        : null
    const kept = replaceProgram(installation, newPath, version)
    rewriteExtras(installation)
    const { path } = installation
    const isServing = restart(context, {
      path,
      kept,
      running,
      mustMigrate: pending.length > 0 && !migratesAtStart,
    })
    const data = {
      version: latest,
      replaced: version,
      isUpgraded: true,
      path,
      kept,
      backup,
      pending,
      isServing,
    }
    output.printData(data, () =>
      output.details(output.done(`otpd ${latest} installed as ${printable(path)}`), [
        ['Replaced', `${version}, kept as ${printable(kept)}`],
        ['Backup', backup === null ? null : printable(backup)],
        ['Migrations', pending.length === 0 ? null : pending.map(printable).join(', ')],
        ['Server', isServing === null ? null : isServing ? 'restarted, and ready' : 'not ready'],
      ]),
    )
    return isServing === false ? exitCodes.negative : exitCodes.done
  } finally {
    rmSync(newPath, { force: true })
  }
}

/**
 * Finds the server of this machine and its data.
 *
 * @returns `place` null if there is no database to check: none yet, or one that this shell has no settings for
 */
async function findServer(
  { io, output }: Context,
  flags: UpgradeFlags,
): Promise<{
  place: ServerPlace | null
  running: RunningServer | null
  migratesAtStart: boolean
}> {
  const loaded = await loadServerConfig(io, flags, 'host command')
  const { config } = loaded
  if (config === null)
    output.warn(
      'The settings in this shell are not complete (otpd config check): they and the data were not checked, and there is no backup.',
    )
  const running = await findRunning(loaded, () => {})
  const migratesAtStart = (running?.config ?? config)?.migrate !== false
  const dataDir = config?.dataDir ?? null
  const hasData = dataDir === null ? config?.database : existsSync(join(dataDir, 'otpd.db'))
  if (!hasData) return { place: null, running, migratesAtStart }
  const configFile = running?.config.configFile ?? config?.configFile ?? null
  const configFlags = configFile === null ? [] : ['--config', configFile]
  const dataFlags = dataDir === null ? [] : ['--data-dir', dataDir]
  return { place: { flags: [...dataFlags, ...configFlags], dataDir }, running, migratesAtStart }
}

/**
 * Restarts the service, unless it would refuse to start on the older database.
 *
 * @returns whether the server is ready again; null if none was restarted
 */
function restart(
  { output }: Context,
  {
    path,
    kept,
    running,
    mustMigrate,
  }: { path: string; kept: string; running: RunningServer | null; mustMigrate: boolean },
): boolean | null {
  const goBack = `To go back: mv ${shellWord(kept)} ${shellWord(path)}, then restart; after a migration, restore the backup first (otpd docs upgrading)`
  const service = findService(path)
  if (!service || mustMigrate) {
    if (mustMigrate)
      output.note(
        'OTPD_NO_MIGRATE is set: run otpd migrate up before the restart, on SQLite with the server stopped.',
      )
    else if (running !== null)
      output.note(`The server (process ${running.pid}) still runs the old program: restart it.`)
    output.note(goBack)
    return null
  }
  const failure = service.restart()
  const health = ['health', '--wait', '10m', '--quiet', ...(running ? ['--server', running.url] : [])]
  const isReady = failure === null && spawnSync(path, health, { stdio: 'ignore' }).status === 0
  if (!isReady)
    output.warn(
      `${service.unit} is not ready${failure ? `: ${failure}` : ''}. Look at its log: journalctl -u otpd`,
    )
  output.note(goBack)
  return isReady
}
