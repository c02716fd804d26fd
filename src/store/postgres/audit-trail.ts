import type { ClientBase } from 'pg'
import type { OnStep } from '../../shared/progress.ts'
import type { Keys } from '../../domain/model/keys.ts'
import { withSnapshot } from './snapshot.ts'
import { verifyChains, type AuditSteps, type AuditVerification } from '../files/audit-verification.ts'

/**
 * Verifies all chains of a shared database in one snapshot, also while nodes serve it. Reads only.
 *
 * @throws as withSnapshot
 */
export const verifySharedTrail = (
  client: ClientBase,
  keys: Pick<Keys, 'audit'>,
  onStep?: OnStep,
): Promise<AuditVerification> => withSnapshot(client, () => runSteps(client, verifyChains(keys, onStep)))

async function runSteps<T>(client: ClientBase, steps: AuditSteps<T>): Promise<T> {
  let step = steps.next()
  while (!step.done) {
    const { sql, values } = step.value
    let placeholder = 0
    const text = sql.replaceAll('?', () => `$${++placeholder}`)
    const { rows } = await client.query<Record<string, unknown>>(text, [...values])
    step = steps.next(rows)
  }
  return step.value
}
