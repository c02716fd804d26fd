import type { Plan } from './plan.ts'
import type { SimulationResult } from './simulate.ts'

const runsMax = 100

/**
 * Leaves out steps of a plan as long as the same rule is broken: halves, then quarters, and so on.
 *
 * @param rule that the plan breaks
 */
export async function shrink(
  plan: Plan,
  rule: string,
  run: (plan: Plan) => Promise<SimulationResult>,
): Promise<Plan> {
  let smallest = plan
  const state = { runs: 0 }
  const fails = async (candidate: Plan) => {
    state.runs++
    const { violations } = await run(candidate).catch(() => ({ violations: [] }))
    return violations.some((one) => one.rule === rule)
  }
  for (
    let size = Math.ceil(plan.steps.length / 2);
    size >= 1 && state.runs < runsMax;
    size = Math.floor(size / 2)
  ) {
    for (let start = 0; start < smallest.steps.length && state.runs < runsMax;) {
      const steps = smallest.steps.toSpliced(start, size)
      if (await fails({ ...smallest, steps })) smallest = { ...smallest, steps }
      else start += size
    }
  }
  return smallest
}
