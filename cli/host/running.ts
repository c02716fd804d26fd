import type { LoadedConfig } from '../../src/config/config.ts'
import type { RunningServerView } from '../../src/host/host.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import { printable, zonedTime } from '../terminal/text.ts'
import { version } from '../version.ts'
import { startRefusedError, type HostFlags } from './commands.ts'
import { loadServerConfig } from './config.ts'
import { usageError } from '../terminal/errors.ts'

export type RunningServer = RunningServerView & {
  /** Settings that have another value in this shell. */
  differences: { setting: string; here: string; server: string }[]
  /** Settings that were changed in the server's configuration file since it started, or was reloaded. */
  edited: { setting: string; isReloadable: boolean }[]
}

/** Settings that each node has for itself. */
const isOwnSetting = (setting: string) =>
  /^(config|log\..+|metrics\.listen|server\.(listen|masterKeyFile|node))$/.test(setting)

/**
 * Finds the server that runs on the data directory of this shell's configuration, or a node that serves its database. Its
 * own environment may differ.
 *
 * @param onUnreadable called if the database of the nodes cannot be read; null is then returned
 */
export async function findRunning(
  { config, settings }: LoadedConfig,
  onUnreadable: (message: string) => void = () => {},
): Promise<RunningServer | null> {
  if (config === null) return null
  const { changedInFile, findRunningServer, settingRows } = await import('../../src/server/bundle.ts')
  const running = await findRunningServer(config, version).catch((error: unknown) => {
    const refused = startRefusedError(error)
    if (refused === null) throw error
    onUnreadable(refused.message)
    return null
  })
  if (running === null) return null
  const isOtherNode = running.node !== null && running.node.name !== config.node
  const hasSameFile = !isOtherNode && running.config.configFile === config.configFile
  const edited = hasSameFile ? changedInFile(config.configFile, running.settings, settings) : []
  const editedNames = new Set(edited.map(({ setting }) => setting))
  const served = new Map(settingRows(running.settings).map(([setting, value]) => [setting, value]))
  const differences = settingRows(settings).flatMap(([setting, here]) => {
    const server = served.get(setting)
    // Port 0 and a relative path are written as they were given; only the server's own directory counts here.
    const isSame =
      server === undefined || server === here || setting === 'server.dataDir' || editedNames.has(setting)
    return isSame || (isOtherNode && isOwnSetting(setting)) ? [] : [{ setting, here, server }]
  })
  return { ...running, differences, edited }
}

/** Finds the public URL of the server that runs here, else that of its listener; undefined if none runs. */
export async function findServerUrl(io: Io, flags: HostFlags): Promise<string | undefined> {
  const running = await findRunning(await loadServerConfig(io, flags, 'host command'))
  return running?.config.publicUrl ?? running?.url
}

/**
 * Requires that this shell names the identity provider of the server that runs here, if one does: an account made for
 * another one cannot log in there.
 *
 * @throws usage error
 */
export async function requireProviderOfServer(io: Io, flags: HostFlags): Promise<void> {
  const loaded = await loadServerConfig(io, flags, 'host command')
  const running = await findRunning(loaded)
  if (running === null || loaded.config === null) return
  const { oidc } = running.config
  if (oidc?.issuer === loaded.config.oidc?.issuer) return
  throw usageError(
    oidc === null
      ? 'The running server has accounts with passwords, and this shell names an OpenID provider.'
      : `Accounts of the running server log in at ${printable(oidc.issuer)}, which this shell does not name.`,
    'Set OTPD_OIDC_ISSUER and OTPD_OIDC_AUDIENCE as for the server, or name its file: --config FILE.',
  )
}

/**
 * Names the server for people: `the running server (process 4711, since 2026-11-20 08:00:00 CET)`, or `node a
 * (process 4711, …)`.
 */
export function describeRunning({ pid, startedAt, node }: RunningServer): string {
  const name = node === null ? 'the running server' : `node ${printable(node.name)}`
  return `${name} (process ${pid}, since ${zonedTime(startedAt)})`
}

/** Lists the settings that were changed in the file and not applied yet, by what applies them. */
export function listEdits({ edited, pid }: RunningServer): { names: string; remedy: string }[] {
  const listNames = (reloadable: boolean) =>
    edited.flatMap((one) => (one.isReloadable === reloadable ? printable(one.setting) : [])).join(', ')
  return [
    { names: listNames(false), remedy: 'restart to apply' },
    { names: listNames(true), remedy: `to apply, run kill -HUP ${pid}` },
  ].filter(({ names }) => names !== '')
}

/** Notes what commands print about the running server. @param what `providers`, `rules` */
export function noteRunning(output: Output, what: string, running: RunningServer): void {
  output.note(`These are the ${what} of ${describeRunning(running)}.`)
  const others = running.node?.others ?? []
  const listNames = (nodes: typeof others) => nodes.map(({ name }) => printable(name)).join(', ')
  const same = others.filter(({ hasSameConfiguration }) => hasSameConfiguration)
  const different = others.filter(({ hasSameConfiguration }) => !hasSameConfiguration)
  if (same.length > 0) output.note(`The same configuration runs on ${listNames(same)}.`)
  if (different.length > 0)
    output.note(`Another configuration runs on ${listNames(different)}: otpd doctor names the differences.`)
}
