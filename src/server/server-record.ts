import { changedSettings, isReloadable } from '../config/changes.ts'
import type { Config, SettingValue } from '../config/config.ts'
import { withoutSecrets } from '../config/without-secrets.ts'
import type { ServerRecord } from '../host/server-record.ts'
import type { Log } from '../log/log.ts'
import { openProviders } from './providers.ts'
import type { Storage } from './storage.ts'

/**
 * Writes the effective settings of this server into its data directory, or into its row in the table of nodes, for the
 * host commands: their own environment is often another one.
 *
 * @returns updates the record after a reload, and logs what changed
 */
export async function recordServer(
  storage: Pick<Storage, 'writeRecord'>,
  needs: {
    config: Config
    settings: readonly SettingValue[]
    url: string
    version: string
    startedAt: number
    log: Log
  },
): Promise<(config: Config, settings: readonly SettingValue[]) => Promise<void>> {
  const { url, version, startedAt, log } = needs
  let { settings } = needs
  const write = async (config: Config, settings: readonly SettingValue[]) => {
    const providers = openProviders(config, version)
    const record: ServerRecord = {
      pid: process.pid,
      startedAt: new Date(startedAt).toISOString(),
      version,
      url,
      settings: [...settings],
      config: withoutSecrets(config),
      providers: await providers.list(),
    }
    providers.close()
    await storage.writeRecord(record, config)
  }
  await write(needs.config, settings)
  return async (config, reloaded) => {
    const changes = changedSettings(settings, reloaded)
    const listNames = (applied: boolean) =>
      changes.flatMap((one) => (one.isReloadable === applied ? one.setting : [])).join(', ')
    settings = [
      ...settings.filter(({ setting }) => !isReloadable(setting)),
      ...reloaded.filter(({ setting }) => isReloadable(setting)),
    ]
    await write(config, settings)
    const { providers, routes } = config.delivery
    const applied = listNames(true) || 'no setting'
    log.info('delivery reloaded', { applied, providers: providers.length, routes: routes.length })
    const waiting = listNames(false)
    if (waiting !== '') log.warn('settings changed that apply at the next start', { settings: waiting })
  }
}
