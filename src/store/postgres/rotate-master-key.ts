import type { ClientBase } from 'pg'
import { masterKeyCheck } from '../../domain/model/keys.ts'
import { secondMs } from '../../shared/durations.ts'
import { runOnPostgres, type SqlSteps } from '../engine/sql-steps.ts'
import { OperationRefused } from '../data-dir/data-dir.ts'
import { finishRotation, openSharedKeys, type OpenDataKeys, type Rotation } from '../data-dir/rotation.ts'
import { listLiveNodes, nodeGoneMs, type LiveNode } from './nodes.ts'

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
 * Ends a rotation, as `finishRotation` does, once all nodes were started with the new master key. Data keys are replaced only
 * while no node serves, which would go on to write with the old ones.
 *
 * @throws as finishRotation; OperationRefused NODES_RUNNING
 */
export const finishSharedRotation = (
  opened: OpenDataKeys,
  options: { compromised: boolean; now: number },
): SqlSteps<Rotation> =>
  finishRotation(opened, {
    ...options,
    check: (areDataKeysNew) => (areDataKeysNew ? requireNoNodes() : requireNewKey(opened.masterKey)),
  })

function* requireNoNodes(): SqlSteps<void> {
  const nodes = yield* listLiveNodes()
  if (nodes.length === 0) return
  throw new OperationRefused(
    'NODES_RUNNING',
    `the data keys cannot be replaced while nodes run: ${namesOf(nodes)}`,
    `Stop all nodes, run this command again, and start them with the new key. ${aboutKilled}`,
  )
}

/** Requires that no node would end because the database has lost the key that it was started with. */
function* requireNewKey(masterKey: Uint8Array): SqlSteps<void> {
  const newKey = masterKeyCheck(masterKey)
  const nodes = (yield* listLiveNodes()).filter(({ settings }) => {
    // Nodes of 0.2.0 do not tell.
    const { masterKey: key = newKey }: { masterKey?: string } = JSON.parse(settings)
    return key !== newKey
  })
  if (nodes.length === 0) return
  throw new OperationRefused(
    'NODES_RUNNING',
    `nodes run with the old master key: ${namesOf(nodes)}`,
    `Restart them with the new one, and repeat this. ${aboutKilled}`,
  )
}

const namesOf = (nodes: readonly LiveNode[]) => nodes.map(({ name }) => name).join(', ')

const aboutKilled = `A node that was killed counts for ${nodeGoneMs / secondMs} seconds.`
