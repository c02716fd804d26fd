import { eq } from 'drizzle-orm'
import type { Database } from '../../../src/store/engine/database.ts'
import { guardOffEnv, createOtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'

export type RaceFixture = Awaited<ReturnType<typeof openRaceFixture>>

/** Creates a service and an application on a database, and reads the state of requests. */
export async function openRaceFixture(
  database: Database,
  plans = unlimitedPlans,
  env: Record<string, string> = { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'off' },
) {
  const service = await createTestService({ plans, env, database })
  const developer = await service.createDeveloper()
  let phones = 0
  return {
    service,
    otp: createOtpClient(service),
    developer,
    application: await service.createApplication(developer),
    newPhone: () => `+1415${2_000_000 + (phones++ % 7_000_000)}`,
    findRow: (requestId: string) => service.store.read.otpRequests.find(requestId),

    /** Counts the log entries about a request by type. */
    async countEvents(requestId: string) {
      const { events } = database.tables
      const rows = await database.read
        .select({ type: events.type })
        .from(events)
        .where(eq(events.requestId, requestId))
      const counts: Record<string, number> = {}
      for (const { type } of rows) counts[type] = (counts[type] ?? 0) + 1
      return counts
    },

    close: () => service.dispose(),
  }
}
