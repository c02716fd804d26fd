import type { ClientBase } from 'pg'
import type { OnStep } from '../../shared/progress.ts'
import type { Keys } from '../../domain/model/keys.ts'
import { runOnPostgres } from '../engine/sql-steps.ts'
import { withSnapshot } from './snapshot.ts'
import { verifyChains, type AuditVerification } from '../data-dir/audit-verification.ts'

/**
 * Verifies all chains of a shared database in one snapshot, also while nodes serve it. Reads only.
 *
 * @throws as withSnapshot
 */
export const verifySharedTrail = (
  client: ClientBase,
  keys: Pick<Keys, 'audit'>,
  onStep?: OnStep,
): Promise<AuditVerification> => withSnapshot(client, () => runOnPostgres(client, verifyChains(keys, onStep)))
