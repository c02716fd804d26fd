import type { LoadedConfig } from '../../src/config/config.ts'
import type { RunningServerView } from '../../src/host/host.ts'
import { localTime } from '../terminal/text.ts'
import { version } from '../version.ts'

export type RunningServer = RunningServerView & {
  /** Settings that have another value in this shell. */
  differences: { setting: string; here: string; server: string }[]
}

/** Finds the server that runs on the data directory of this shell's configuration. Its own environment may differ. */
export async function findRunning({ config, settings }: LoadedConfig): Promise<RunningServer | null> {
  if (config === null) return null
  const { findRunningServer, settingRows } = await import('../../src/server/bundle.ts')
  const running = findRunningServer(config, version)
  if (running === null) return null
  const served = new Map(settingRows(running.settings).map(([setting, value]) => [setting, value]))
  const differences = settingRows(settings).flatMap(([setting, here]) => {
    const server = served.get(setting)
    // Port 0 and a relative path are written as they were given; only the server's own directory counts here.
    const isSame = server === undefined || server === here || setting === 'server.dataDir'
    return isSame ? [] : [{ setting, here, server }]
  })
  return { ...running, differences }
}

/** Names the server for people: `the running server (process 4711, since 2026-11-20 08:00:00)`. */
export const describeRunning = ({ pid, startedAt }: RunningServer) =>
  `the running server (process ${pid}, since ${localTime(startedAt)})`
