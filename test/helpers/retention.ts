import { deriveKeys, masterKeyBytes } from '../../src/domain/model/keys.ts'
import {
  createRetention,
  type PurgeThrottle,
  type RetentionSettings,
} from '../../src/domain/upkeep/retention.ts'
import type { TestService } from './service.ts'

/** The keys of every test service. */
export const testKeys = deriveKeys(new Uint8Array(masterKeyBytes).fill(7))

const defaultSettings: RetentionSettings = { phoneDays: 30, logDays: 90, requestDays: 0, auditDays: 365 }

/** What the server does every ten minutes, as a restarted one would: nothing is remembered but what is stored. */
export function createPurger(service: Pick<TestService, 'store' | 'clock'>, settings = defaultSettings) {
  return async (throttle: Partial<PurgeThrottle> = {}) => {
    const retention = createRetention({ ...service, keys: testKeys, settings })
    await retention.purge({ batchSize: 3, yieldToRequests: () => Promise.resolve(true), ...throttle })
  }
}
