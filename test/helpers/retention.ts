import { deriveKeys, masterKeyBytes } from '../../src/domain/model/keys.ts'
import { createRetention, type Pace, type RetentionSettings } from '../../src/domain/upkeep/retention.ts'
import type { TestService } from './service.ts'

/** The keys of every test service. */
export const testKeys = deriveKeys(new Uint8Array(masterKeyBytes).fill(7))

const usual: RetentionSettings = { phoneDays: 30, logDays: 90, requestDays: 0, auditDays: 365 }

/** What the server does every ten minutes, as a restarted one would: nothing is remembered but what is stored. */
export function purger(service: Pick<TestService, 'store' | 'clock'>, settings = usual) {
  return async (pace: Partial<Pace> = {}) => {
    const retention = createRetention({ ...service, keys: testKeys, settings })
    await retention.purge({ chunk: 3, goOn: () => Promise.resolve(true), ...pace })
  }
}
