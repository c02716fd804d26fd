import { Counter, type Registry } from 'prom-client'
import { invariants, type Invariant } from '../world/world.ts'

/** Adds the counter of invariants that did not hold. @returns counts one */
export function addInvariantMetrics(registry: Registry): (invariant: Invariant) => void {
  const broken = new Counter({
    name: 'otpd_broken_invariants_total',
    help: 'Conditions that always hold, and did not, by name: a fault of otpd. Please report it with the log.',
    labelNames: ['invariant'],
    registers: [registry],
  })
  for (const invariant of invariants) broken.inc({ invariant }, 0)
  return (invariant) => broken.inc({ invariant })
}
