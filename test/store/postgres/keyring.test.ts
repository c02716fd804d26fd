import { expect, test } from 'bun:test'
import { isAuthenticHead } from '../../../src/domain/model/audit-chain.ts'
import { StartRefused } from '../../../src/store/data-dir/data-dir.ts'
import { openSharedKeyring } from '../../../src/store/postgres/keyring.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'

const masterKeys = [7, 8].map((byte) => new Uint8Array(32).fill(byte, 1))

describeEachDatabase('shared keyring', (database) => {
  /** Opens it from many nodes at once, with a master key each. */
  const openAll = (nodes: readonly Uint8Array[]) =>
    Promise.allSettled(nodes.map((masterKey) => openSharedKeyring(database(), masterKey, { now: 1 })))

  async function deleteKeys() {
    const { auditChains, dataKeys, meta } = database().tables
    await database().write(async (tx) => {
      await tx.delete(auditChains)
      await tx.delete(dataKeys)
      await tx.delete(meta)
    })
  }

  test('gives nodes that start at once the same keys, made by one of them', async () => {
    for (let round = 0; round < 10; round++) {
      await deleteKeys()
      const nodes = await openAll(masterKeys.slice(0, 1).flatMap((key) => Array<Uint8Array>(8).fill(key)))
      const opened = nodes.flatMap((node) => (node.status === 'fulfilled' ? node.value : []))
      expect(opened).toHaveLength(8)
      expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1)
      expect(new Set(opened.map(({ keyring }) => keyring.keys.clientId.toString('hex'))).size).toBe(1)
      // Without it, an empty audit trail would look as if it had been deleted.
      const heads = await database().read.select().from(database().tables.auditChains)
      const keys = opened[0]?.keyring.keys ?? expect.unreachable()
      expect(heads.map((head) => head.chain === 'host' && isAuthenticHead(keys, head))).toEqual([true])
    }
  })

  test('accepts one of the master keys that nodes start with at once, and refuses the others', async () => {
    for (let round = 0; round < 10; round++) {
      await deleteKeys()
      const nodes = await openAll([...masterKeys, ...masterKeys])
      expect(nodes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
      for (const node of nodes) {
        if (node.status === 'rejected') expect(node.reason).toBeInstanceOf(StartRefused)
      }
    }
  })
})
