import type { Plan } from '../../src/domain/model/plans.ts'

/** Plan without limits that a test of something else could reach. */
export const unlimitedPlan: Plan = {
  projects: 1_000_000,
  applications: 1_000_000,
  sendPerMinute: 0,
  verifyPerMinute: 0,
  consolePerMinute: 0,
  lookupsPerMinute: 0,
}

export const unlimitedPlans = { free: unlimitedPlan }
