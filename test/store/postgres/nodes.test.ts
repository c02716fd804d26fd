import { expect, test } from 'bun:test'
import {
  listNodes,
  registerNode,
  removeNode,
  renewNode,
  type NodeRow,
} from '../../../src/store/postgres/nodes.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'

const dayMs = 86_400_000
const row = (name: string, fields: Partial<NodeRow> = {}): NodeRow => ({
  name,
  process: `${name}-1`,
  version: '1.0.0',
  configuration: 'hash',
  settings: '{}',
  startedAt: dayMs,
  seenAt: dayMs,
  ...fields,
})

describeEachDatabase('the rows of nodes', (database, kind) => {
  // SQLite has one node and no table of them.
  if (kind === 'SQLite') return

  test('are renewed by their process alone, and removed when it stops', async () => {
    await registerNode(database(), row('a'))
    expect(await renewNode(database(), { ...row('a'), seenAt: dayMs + 1 })).toBe(true)
    const [renewed] = await listNodes(database())
    expect(renewed).toMatchObject({ name: 'a', seenAt: dayMs + 1 })

    await registerNode(database(), row('a', { process: 'a-2', seenAt: dayMs + 2 }))
    expect(await renewNode(database(), { ...row('a'), seenAt: dayMs + 3 })).toBe(false)
    await removeNode(database(), row('a'))
    expect(await listNodes(database())).toMatchObject([{ process: 'a-2', seenAt: dayMs + 2 }])
    await removeNode(database(), row('a', { process: 'a-2' }))
    expect(await listNodes(database())).toEqual([])
  })

  test('are deleted a day after they were last renewed, when another node starts', async () => {
    await registerNode(database(), row('old', { seenAt: 1 }))
    await registerNode(database(), row('lately', { seenAt: dayMs / 2 }))
    await registerNode(database(), row('b', { seenAt: dayMs + 2 }))
    const names = (await listNodes(database())).map(({ name }) => name)
    expect(names).toEqual(['b', 'lately'])
  })
})
