import type { SettingValue } from '../config/config.ts'
import type { PublicConfig } from '../config/without-secrets.ts'
import type { Channel } from '../domain/model/request.ts'

/** A server's own description of itself, in its data directory or in the table of nodes. */
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

/** A node that serves a shared database. */
export type RunningNode = {
  name: string
  /** Other nodes that run now. */
  others: Array<{ name: string; hasSameConfiguration: boolean }>
}
