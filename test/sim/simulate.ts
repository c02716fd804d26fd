import { checkAtRest } from './checks.ts'
import type { Violation } from './model.ts'
import { schedulePlan } from './play.ts'
import type { Plan } from './plan.ts'
import { openSimulation } from './simulation.ts'

export type SimulationResult = {
  violations: Violation[]
  /** SHA-256 of the trace. */
  hash: string
  simulatedMs: number
  requests: number
  restarts: number
  calls: number
}

/** Plays a plan against a new server, and checks what is left. */
export async function simulate(plan: Plan, onTrace?: (line: string) => void): Promise<SimulationResult> {
  const simulation = await openSimulation(plan, onTrace ? { onTrace } : {})
  try {
    const { scheduler } = simulation
    schedulePlan(simulation, plan)
    const end = scheduler.now() + plan.untilMs
    while (scheduler.now() < end && simulation.violations.length === 0)
      await scheduler.runUntil(Math.min(end, scheduler.now() + 10_000))
    if (simulation.violations.length === 0) await checkAtRest(simulation)
    return {
      violations: simulation.violations,
      hash: simulation.traceHash(),
      simulatedMs: scheduler.now() - simulation.startAt,
      requests: simulation.model.requests.length,
      restarts: simulation.restarts(),
      calls: scheduler.calls(),
    }
  } finally {
    simulation.close()
  }
}
