import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { logIn } from '../helpers/webhook-client.ts'
import type { Trial } from './family.ts'
import { createLedger } from './ledger.ts'
import { startLoad } from './load.ts'
import { startServerAt, type Home } from './server.ts'
import { createProcessClock } from '../helpers/process-clock.ts'

const dayMs = 24 * 60 * 60_000
const purgeEveryMs = 10 * 60_000
/** Deadline for a purge: one interval, plus half of one for the purge in progress. */
const purgedWithinMs = 1.5 * purgeEveryMs
const purges = 6

/** Minimum retention that can be configured. */
export const retention = { phoneDays: 1, logDays: 2, requestDays: 2 }

export const retentionEnv = {
  OTPD_RETENTION_PHONE_DAYS: String(retention.phoneDays),
  OTPD_RETENTION_LOG_DAYS: String(retention.logDays),
  OTPD_RETENTION_REQUEST_DAYS: String(retention.requestDays),
}

/**
 * Fills a database with requests of such an age that each purge during the next hour finds phones to pseudonymize and
 * requests to delete.
 *
 * @param changes approximate number of both
 */
export async function fillWithAgedRequests(trial: Trial, serverHome: Home, changes: number): Promise<void> {
  const wallClock = createProcessClock(trial.folder)
  for (const days of [retention.requestDays, retention.phoneDays]) {
    for (let purge = 0; purge < purges; purge++) {
      wallClock.setTimeOfDay(purge * purgeEveryMs - days * dayMs)
      const server = await startServerAt(serverHome, { ...wallClock.env, ...retentionEnv })
      const app = await (await logIn(server.url)).createApplication('Old')
      const ledger = createLedger()
      const load = startLoad({ url: server.url, apps: [app], ledger, random: trial.random, connections: 8 })
      while (ledger.count.acknowledged < changes / purges / 2) await Bun.sleep(5)
      await load.stop()
      const exitCode = await server.stop()
      if (exitCode !== 0) throw new Error(`the server with the old clock ended with ${exitCode}`)
    }
  }
  wallClock.close()
}

/** Counts requests and phones that a purge should already have processed. */
export function countOverdue({ dataDir }: Home) {
  const database = new Database(join(dataDir, 'otpd.db'), { readonly: true })
  const count = (where: string, days: number) =>
    database
      .query<{ n: number }, [number]>(`select count(*) as n from otp_requests where ${where} created_at < ?`)
      .get(Date.now() - days * dayMs - purgedWithinMs)?.n ?? NaN
  const overdue = {
    requests: count('', retention.requestDays),
    phones: count(`phone like '+%' and`, retention.phoneDays),
  }
  database.close()
  return overdue
}
