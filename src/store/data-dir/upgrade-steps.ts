import type { OnStep } from '../../shared/progress.ts'
import { type Migration } from '../engine/migration-files.ts'
import { rewritesRows } from '../engine/migrations.ts'

// Times that steps take, relative to each other; measured with 230,000 requests of 0.1.0.

const copySteps: Array<[name: string, weight: number]> = [
  ['checking the database', 3],
  ['copying', 3],
  ['checking the copy', 3],
  ['authenticating', 1],
]

const migrationWeights: Record<string, number> = {
  '0012_api_tokens': 0.1,
  '0013_phones': 5,
  '0016_opaque_ids': 0.1,
  '0017_list_index': 3,
  '0018_admission_log': 0.1,
  '0022_people': 16,
  '0033_lists': 3,
}

const weightOf = (migration: Migration) =>
  migrationWeights[migration.name] ?? (rewritesRows([migration]) ? 4 : 0.1)

/** Adds to each step of an upgrade its share of the whole work. */
export function withShares(onStep: OnStep, pending: readonly Migration[]): OnStep {
  const steps = [
    ...copySteps,
    ...pending.map((migration) => [`migrating ${migration.name}`, weightOf(migration)] as const),
    ['checking the migrated data', 1] as const,
  ]
  const total = steps.reduce((sum, [, weight]) => sum + weight, 0)
  const shares = new Map<string, { from: number; to: number }>()
  let before = 0
  for (const [name, weight] of steps) {
    shares.set(name, { from: before / total, to: (before + weight) / total })
    before += weight
  }
  return (step) => {
    const share = shares.get(step.step.replace(/ \(\d+ of \d+\)$/, ''))
    onStep(share ? { ...step, share } : step)
  }
}
