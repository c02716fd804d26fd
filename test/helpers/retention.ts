import {
  createRetention,
  type PurgeThrottle,
  type RetentionSettings,
} from '../../src/domain/upkeep/retention.ts'
import { testKeys } from './keys.ts'
import type { TestService } from './service.ts'

const defaultSettings: RetentionSettings = { phoneDays: 30, logDays: 90, requestDays: 0, auditDays: 365 }

/** Creates the purge that the server runs every ten minutes. Each call starts from the stored state, as after a restart. */
export function createPurger(service: Pick<TestService, 'store' | 'clock'>, settings = defaultSettings) {
  return async (throttle: Partial<PurgeThrottle> = {}) => {
    const retention = createRetention({ ...service, keys: testKeys, settings })
    await retention.purge({ batchSize: 3, yieldToRequests: () => Promise.resolve(true), ...throttle })
  }
}
