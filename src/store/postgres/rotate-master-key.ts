import type { ClientBase } from 'pg'
import { query, runOnPostgres, type SqlSteps } from '../engine/sql-steps.ts'
import { OperationRefused } from '../data-dir/data-dir.ts'
import { finishRotation, openSharedKeys, type OpenDataKeys, type Rotation } from '../data-dir/rotation.ts'
import { nodeGoneMs } from './nodes.ts'

/**
 * Runs a rotation of a shared database, while nodes serve it, in a transaction that no other rotation, and no start of a
 * node, overlaps.
 *
 * @throws StartRefused the master key in use does not open the database
 */
export async function rotateShared(
  client: ClientBase,
  masterKey: Uint8Array,
  rotate: (opened: OpenDataKeys) => SqlSteps<Rotation>,
): Promise<Rotation> {
  await client.query('begin')
  try {
    await client.query('lock table data_keys, nodes in exclusive mode')
    const opened = await runOnPostgres(client, openSharedKeys(masterKey))
    const rotation = await runOnPostgres(client, rotate(opened))
    await client.query('commit')
    return rotation
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

/**
 * Ends a rotation, as `finishRotation` does. Data keys are replaced only while no node serves, which would go on to write
 * with the old ones.
 *
 * @throws as finishRotation; OperationRefused NODES_RUNNING
 */
export const finishSharedRotation = (
  opened: OpenDataKeys,
  options: { compromised: boolean; now: number },
): SqlSteps<Rotation> => finishRotation(opened, { ...options, beforeReplacement: requireNoNodes })

function* requireNoNodes(): SqlSteps<void> {
  const nodes = yield* query<{ name: string }>(
    'select name from nodes where seen_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - ? order by name',
    nodeGoneMs,
  )
  if (nodes.length === 0) return
  throw new OperationRefused(
    'NODES_RUNNING',
    `the data keys cannot be replaced while nodes run: ${nodes.map(({ name }) => name).join(', ')}`,
    'Stop all nodes, run this command again, and start them with the new key. A node that was killed counts for 35 seconds.',
  )
}
