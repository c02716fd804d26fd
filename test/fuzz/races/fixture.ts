import { eq } from 'drizzle-orm'
import type { Database } from '../../../src/store/engine/database.ts'
import { guardOffEnv, createOtpClient } from '../../helpers/otp-client.ts'
import { createTestService } from '../../helpers/service.ts'

export const unlimitedPlans = {
  free: { projects: 1_000_000, applications: 1_000_000, sendPerMinute: 0, verifyPerMinute: 0 },
}

export type RaceFixture = Awaited<ReturnType<typeof openRaceFixture>>

/** A service on a database, an application in it, and what it knows of a request. */
export async function openRaceFixture(database: Database, plans = unlimitedPlans) {
  const service = await createTestService({ plans, env: guardOffEnv, database })
  const developer = await service.createDeveloper()
  let phones = 0
  return {
    service,
    otp: createOtpClient(service),
    developer,
    application: await service.createApplication(developer),
    newPhone: () => `+1415${2_000_000 + (phones++ % 7_000_000)}`,
    findRow: (requestId: string) => service.store.read.otpRequests.find(requestId),

    /** What the log has about a request, each kind with its number. */
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
