import { beforeEach, expect, test } from 'bun:test'
import { asc, eq } from 'drizzle-orm'
import { recordAudit } from '../../src/domain/accounts/audit.ts'
import { isAuthenticHead, isSuccessor, type ChainedEntry } from '../../src/domain/model/audit-chain.ts'
import { hostOrigin, type AuditAction } from '../../src/domain/model/audit.ts'
import { createIds } from '../../src/domain/model/ids.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { dayMs } from '../../src/shared/durations.ts'
import { createStore } from '../../src/store/store.ts'
import { testClock } from '../helpers/clock.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'

describeEachDatabase('audit chains', (database) => {
  const clock = testClock()
  const newId = createIds(clock, (bytes) => crypto.getRandomValues(bytes))
  let store: Store
  let ada: string
  beforeEach(() => {
    store = createStore(database(), { keys: testKeys })
    ada = newId('dev')
  })

  const record = (developerId: string | null, action: AuditAction = 'account.created') =>
    store.write((tx) => {
      const operator = { developerId, actorId: null, origin: hostOrigin }
      return recordAudit(tx, newId, operator, { action }, clock.now())
    })
  const readChain = async (chain: string) => {
    const { auditChains, auditEntries } = database().tables
    const [head] = await database().read.select().from(auditChains).where(eq(auditChains.chain, chain))
    const rows = await database()
      .read.select()
      .from(auditEntries)
      .where(eq(auditEntries.developerId, chain))
      .orderBy(asc(auditEntries.position))
    if (!head) throw new Error(`there is no chain ${chain}`)
    // Written from an AuditAction.
    return { head, entries: rows.map((row): ChainedEntry => ({ ...row, action: row.action as AuditAction })) }
  }
  /** Records entries of ten days, one a day, and lets retention delete all but the last three. */
  const expireEntries = async (tamper = async () => {}) => {
    for (let day = 0; day < 10; day++) {
      clock.advance(dayMs)
      await record(ada)
      if (day % 3 === 0) await record(null)
    }
    await tamper()
    while (await store.write((tx) => tx.audit.deleteOldest(clock.now() - 3 * dayMs, 2)));
    return readChain(ada)
  }

  test('keep number and hash of the last entry that retention deleted, and go on from there', async () => {
    const { head, entries } = await expireEntries()
    expect({ entries: head.entries, deleted: head.deleted }).toEqual({ entries: 10, deleted: 7 })
    expect(entries.map(({ position }) => position)).toEqual([8, 9, 10])
    const [first] = entries
    expect(first && isSuccessor(first, { position: head.deleted, hash: head.deletedHash })).toBe(true)
    expect(isAuthenticHead(testKeys, head)).toBe(true)
    await record(ada)
    const later = await readChain(ada)
    expect(later.entries.at(-1)?.position).toBe(11)
    expect(isAuthenticHead(testKeys, later.head)).toBe(true)
  })

  test('stay broken if retention deletes an entry that was changed', async () => {
    const { auditEntries } = database().tables
    const { head, entries } = await expireEntries(async () => {
      const [, second] = (await readChain(ada)).entries
      await database().write(async (tx) => {
        await tx
          .update(auditEntries)
          .set({ detail: 'forged' })
          .where(eq(auditEntries.id, second?.id ?? ''))
      })
    })
    expect(entries).toHaveLength(3)
    expect(isAuthenticHead(testKeys, head)).toBe(false)
  })

  test('hold no entry of a transaction that failed', async () => {
    await record(ada)
    const failing = store.write(async (tx) => {
      const operator = { developerId: ada, actorId: null, origin: hostOrigin }
      await recordAudit(tx, newId, operator, { action: 'project.deleted' }, clock.now())
      throw new Error('no')
    })
    await Promise.all([failing.catch(() => {}), record(ada, 'project.updated')])
    const { entries } = await readChain(ada)
    expect(entries.map(({ action }) => action)).toEqual(['account.created', 'project.updated'])
  })

  test('name the newest entry of another chain in each entry that follows one', async () => {
    await record(ada)
    await record(null)
    await record(ada)
    await record(ada)
    const { entries } = await readChain(ada)
    expect(entries.at(1)?.witness).toMatch(/^host\/\d+\/[\w-]{43}$/)
    expect(entries.at(2)?.witness).toBeNull()
  })
})
