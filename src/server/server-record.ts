import type { Config, SettingValue } from '../config/config.ts'
import { withoutSecrets } from '../config/without-secrets.ts'
import type { ServerRecord } from '../host/server-record.ts'
import { openProviders } from './providers.ts'
import type { Storage } from './storage.ts'

/** Names of settings that a reload applies. */
const isReloadable = ({ setting }: SettingValue) => /^(guard\.|limits\.phone)/.test(setting)

/**
 * Writes the effective settings of this server into its data directory, or into its row in the table of nodes, for the
 * host commands: their own environment is often another one.
 *
 * @returns updates the record after a reload
 */
export async function recordServer(
  storage: Pick<Storage, 'writeRecord'>,
  needs: {
    config: Config
    settings: readonly SettingValue[]
    url: string
    version: string
    startedAt: number
  },
): Promise<(config: Config, settings: readonly SettingValue[]) => Promise<void>> {
  const { url, version, startedAt } = needs
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
  await write(needs.config, needs.settings)
  return async (config, reloaded) => {
    const isNow = new Map(reloaded.filter(isReloadable).map((setting) => [setting.setting, setting]))
    await write(
      config,
      needs.settings.map((setting) => isNow.get(setting.setting) ?? setting),
    )
  }
}
