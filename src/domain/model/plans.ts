/**
 * Limits of a plan. Sends and verifications count per application, look-ups per API key, calls of console routes per
 * developer; a rate of 0 means no limit.
 */
export type Plan = {
  projects: number
  applications: number
  sendPerMinute: number
  verifyPerMinute: number
  consolePerMinute: number
  lookupsPerMinute: number
}

/** All plans of this installation by name. `free` always exists. */
export type Plans = Readonly<{ free: Plan; [name: string]: Plan }>

/** Default limits of the free plan; the operator can change them. */
export const FREE_PLAN: Readonly<Plan> = {
  projects: 10,
  applications: 5,
  sendPerMinute: 5,
  verifyPerMinute: 10,
  consolePerMinute: 600,
  lookupsPerMinute: 60,
}

/**
 * Finds the plan whose limits apply to a developer. A plan that the operator has since removed from the configuration
 * counts as `free`, so that the account keeps working.
 */
export const resolvePlanName = (plans: Plans, name: string) => (Object.hasOwn(plans, name) ? name : 'free')

/** Finds the limits of a developer's plan; see `resolvePlanName`. */
export const resolvePlan = (plans: Plans, name: string): Plan =>
  plans[resolvePlanName(plans, name)] ?? plans.free
