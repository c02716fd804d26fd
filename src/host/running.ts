import type { Config, SettingValue } from '../config/config.ts'
import type { PublicConfig } from '../config/without-secrets.ts'
import type { Channel } from '../domain/model/request.ts'
import { isRecord } from '../shared/json.ts'
import { readServerRecord } from '../store/files/server-record.ts'

/** A server's own description of itself, in its data directory. */
export type ServerRecord = {
  pid: number
  /** ISO 8601. */
  startedAt: string
  version: string
  /** URL of the listener, with the bound port. */
  url: string
  /** Settings as `otpd config show` prints them. */
  settings: SettingValue[]
  config: PublicConfig
  /** Providers with the channels that their settings support. */
  providers: Array<{ name: string; kind: string; title: string; channels: readonly Channel[] }>
}

/** The server that runs on a data directory, with the settings that it was started with. */
export type RunningServerView = Omit<ServerRecord, 'config'> & {
  /** Configuration of the server; the master key and the passwords are those of this process. */
  config: Config
}

/**
 * Finds the server that runs on the data directory of a configuration.
 *
 * @param version version of this program; a record of another version may have another form, and is not used
 * @returns null if none runs, or it says nothing that this user and version can read
 */
export function findRunningServer(config: Config, version: string): RunningServerView | null {
  if (config.dataDir === null) return null
  const record = readServerRecord(config.dataDir)
  if (!isRecord(record) || record.version !== version) return null
  // Written by this very version.
  const { config: running, ...view } = record as ServerRecord
  return { ...view, config: { ...running, database: null, secrets: config.secrets } }
}
