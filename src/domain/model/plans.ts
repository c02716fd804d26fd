/** What a developer on a plan may have and do. The two rates are per application; a rate of 0 is no limit. */
export type Plan = {
  projects: number
  applications: number
  sendPerMinute: number
  verifyPerMinute: number
}

/** Every plan of this installation by name. `free` always exists. */
export type Plans = Readonly<{ free: Plan; [name: string]: Plan }>

/** The free plan as the service's document states it; the operator may change its numbers. */
export const FREE_PLAN: Readonly<Plan> = {
  projects: 10,
  applications: 5,
  sendPerMinute: 5,
  verifyPerMinute: 10,
}

/**
 * The numbers that hold for a developer whose stored plan is `name`.
 *
 * A name that the operator has since removed from the configuration counts as `free`: the account goes on
 * working, with the smallest promise.
 */
export function resolvePlan(plans: Plans, name: string): Plan {
  const plan = Object.hasOwn(plans, name) ? plans[name] : undefined
  return plan ?? plans.free
}
