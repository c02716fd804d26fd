import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Database as SqliteConnection } from 'bun:sqlite'
import { recordAudit } from '../../../src/domain/accounts/audit.ts'
import { createDeveloperService } from '../../../src/domain/accounts/developers.ts'
import { chainName, hashEntry, hostChain, type ChainedEntry } from '../../../src/domain/model/audit-chain.ts'
import { hostOrigin, type AuditAction } from '../../../src/domain/model/audit.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import { masterKeyBytes } from '../../../src/domain/model/keys.ts'
import { deriveKeys, testKeys } from '../../helpers/keys.ts'
import { FREE_PLAN } from '../../../src/domain/model/plans.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { runOnSqlite } from '../../../src/store/engine/sql-steps.ts'
import { verifyAuditTrail } from '../../../src/store/data-dir/audit-chains.ts'
import { resignHeads } from '../../../src/store/data-dir/rotation.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { openTestSqlite } from '../../helpers/databases.ts'

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
const otherKeys = deriveKeys(new Uint8Array(masterKeyBytes).fill(9))

let opened: Awaited<ReturnType<typeof openTestSqlite>>
let store: Store
let attacker: SqliteConnection
let clock: ReturnType<typeof testClock>
let newId: ReturnType<typeof createIds>
let ada: string
let eve: string

const record = (developerId: string | null, action: AuditAction, detail: string | null = null) =>
  store.write((tx) => {
    const operator = { developerId, actorId: null, origin: hostOrigin }
    return recordAudit(tx, newId, operator, { action, detail }, clock.now())
  })
const invite = async (email: string) => {
  const plans = { free: FREE_PLAN }
  const developers = createDeveloperService({ store, clock, newId, random, plans, signUp: 'closed' })
  return (await developers.invite({ email }, hostOrigin)).id
}
const verify = () => verifyAuditTrail(attacker, testKeys)
const firstBreak = () => verify().breaks[0]
const run = (sql: string, ...values: Array<string | number>) => void attacker.run(sql, values)
const entryAt = (chain: string, position: number): ChainedEntry => {
  const entry = attacker
    .query<ChainedEntry, [string, string, number]>(
      `select id, developer_id as developerId, action, actor_id as actorId, target_id as targetId, target_name as targetName,
       detail, source, ip, user_agent as userAgent, trace_id as traceId, token_id as tokenId, at, position, hash, witness
       from audit_entries where developer_id is nullif(?, ?) and position = ?`,
    )
    .get(chain, hostChain, position)
  if (!entry) throw new Error(`${chain} has no entry ${position}`)
  return entry
}

beforeEach(async () => {
  opened = await openTestSqlite()
  store = createStore(opened.database, { keys: testKeys })
  attacker = connect(opened.path, 0)
  clock = testClock()
  newId = createIds(clock, random)
  ada = await invite('ada@example.com')
  eve = await invite('eve@example.com')
  await record(ada, 'project.created', 'one')
  await record(ada, 'project.updated', 'name')
  await record(null, 'signing_key.rotated')
  await record(eve, 'credential.rotated', 'client_secret')
  await record(ada, 'project.deleted')
})
afterEach(async () => {
  attacker.close()
  await opened.dispose()
})

test('an untouched trail is unbroken: one chain per developer and one for the installation', () => {
  const { isUnbroken, breaks, entries, deleted, heads } = verify()
  expect({ isUnbroken, breaks, entries, deleted }).toEqual({
    isUnbroken: true,
    breaks: [],
    entries: 7,
    deleted: 0,
  })
  expect(heads.map(({ chain, entries: count }) => [chain, count])).toEqual(
    [
      [ada, 4],
      [eve, 2],
      [hostChain, 1],
    ].toSorted(),
  )
})

test('texts that a database stores differently do not break it', async () => {
  await record(ada, 'project.updated', 'lone surrogate \ud800, combining é, "quotes"\n')
  expect(verify().isUnbroken).toBe(true)
})

describe('an attacker who can write to the file, but has no key, is noticed after', () => {
  const columns = [
    'action',
    'actor_id',
    'target_id',
    'target_name',
    'detail',
    'ip',
    'user_agent',
    'trace_id',
    'token_id',
  ]
  test.each([...columns, 'id', 'witness'])('editing %s of an entry', (column) => {
    const { id } = entryAt(ada, 2)
    run(`update audit_entries set ${column} = ? where id = ?`, 'forged', id)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'entry_changed', position: 2 })
  })

  test('editing the time or the source of an entry', () => {
    run('update audit_entries set at = at + 1 where id = ?', entryAt(ada, 2).id)
    run(`update audit_entries set source = 'server' where id = ?`, entryAt(eve, 1).id)
    expect(verify().breaks).toMatchObject([
      { chain: ada, kind: 'entry_changed', position: 2 },
      { chain: eve, kind: 'entry_changed', position: 1 },
    ])
  })

  test('editing an entry, and hashing it and all later ones again', () => {
    let previous = entryAt(ada, 1).hash
    for (const position of [2, 3, 4]) {
      const entry = { ...entryAt(ada, position), ...(position === 2 && { detail: 'forged' }) }
      previous = hashEntry(entry, previous)
      run(
        'update audit_entries set detail = ?, hash = ? where id = ?',
        entry.detail ?? '',
        previous,
        entry.id,
      )
      if (entry.detail === null) run('update audit_entries set detail = null where id = ?', entry.id)
    }
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'head_changed' })
    run('update audit_chains set last_hash = ? where chain = ?', previous, ada)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'head_changed' })
  })

  test('deleting an entry in the middle, even if the later ones move up', () => {
    const { id } = entryAt(ada, 2)
    run('delete from audit_entries where id = ?', id)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'entry_missing', position: 2 })
    run('update audit_entries set position = position - 1 where developer_id = ? and position > 2', ada)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'entry_changed', position: 2 })
  })

  test('cutting off the end, with or without the count', () => {
    run('delete from audit_entries where developer_id = ? and position = 4', ada)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'entry_missing', position: 4 })
    run('update audit_chains set entries = 3, last_hash = ? where chain = ?', entryAt(ada, 3).hash, ada)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'head_changed' })
  })

  test('pretending that retention deleted the beginning', () => {
    const { hash } = entryAt(ada, 2)
    run('delete from audit_entries where developer_id = ? and position <= 2', ada)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'entry_missing', position: 1 })
    run('update audit_chains set deleted = 2, deleted_hash = ? where chain = ?', hash, ada)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'head_changed' })
  })

  test('adding an entry', () => {
    const { hash, ...entry } = entryAt(ada, 4)
    const forged = { ...entry, id: newId('aud'), detail: 'forged', position: 5 }
    const { id, action, at } = forged
    run(
      `insert into audit_entries (id, developer_id, action, detail, source, at, position, hash)
       values (?, ?, ?, ?, 'host', ?, 5, ?)`,
      id,
      ada,
      action,
      'forged',
      at,
      hashEntry(forged, hash),
    )
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'entry_added', position: 5, entryId: id })
  })

  test('adding an entry to the installation in the place of another', () => {
    run(
      `insert into audit_entries (id, action, source, at, position, hash) values ('aud_x', 'setup_token.created', 'host', 1, 1, '')`,
    )
    expect(verify().breaks).toHaveLength(1)
    expect(firstBreak()).toMatchObject({ chain: hostChain, position: 1 })
  })

  test('swapping two entries', () => {
    const [second, third] = [entryAt(ada, 2), entryAt(ada, 3)]
    run('update audit_entries set position = 99 where id = ?', second.id)
    run('update audit_entries set position = 2 where id = ?', third.id)
    run('update audit_entries set position = 3 where id = ?', second.id)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'entry_changed', position: 2 })
  })

  test('moving an entry to another developer', () => {
    run('update audit_entries set developer_id = ?, position = 3 where id = ?', eve, entryAt(ada, 4).id)
    expect(verify().breaks.map(({ chain, kind }) => [chain, kind])).toEqual([
      [ada, 'entry_missing'],
      [eve, 'entry_added'],
    ])
  })

  test('deleting a whole chain', () => {
    run('delete from audit_entries where developer_id = ?', eve)
    expect(firstBreak()).toMatchObject({ chain: eve, kind: 'entry_missing', position: 1 })
    run('delete from audit_chains where chain = ?', eve)
    expect(verify().breaks).toContainEqual({
      chain: eve,
      kind: 'chain_missing',
      position: null,
      entryId: null,
    })
    run('delete from developers where id = ?', eve)
    expect(verify().isUnbroken).toBe(false)
  })

  test('deleting a whole chain, which then starts again', async () => {
    run('delete from audit_entries where developer_id = ?', eve)
    run('delete from audit_chains where chain = ?', eve)
    await record(eve, 'project.created')
    expect(verify().isUnbroken).toBe(false)
  })

  test('deleting everything, after which all chains start again', async () => {
    run('delete from audit_entries')
    run('delete from audit_chains')
    await record(null, 'signing_key.rotated')
    await record(ada, 'project.created')
    await record(eve, 'project.created')
    expect(verify().breaks.map(({ chain, kind }) => [chain, kind])).toEqual(
      [ada, eve].toSorted().map((chain) => [chain, 'head_changed']),
    )
  })

  test('deleting the newest developer with the chain, which no other chain has seen', async () => {
    const id = await invite('new@example.com')
    run('delete from audit_entries where developer_id = ?', id)
    run('delete from audit_chains where chain = ?', id)
    run('delete from developers where id = ?', id)
    expect(verify().breaks).toEqual([{ chain: null, kind: 'chain_missing', position: null, entryId: null }])
  })

  test('deleting the chain of the installation, or everything', () => {
    run('delete from audit_entries where developer_id is null')
    run('delete from audit_chains where chain = ?', hostChain)
    expect(firstBreak()).toMatchObject({ chain: hostChain, kind: 'chain_missing' })
    run('delete from audit_entries')
    run('delete from audit_chains')
    expect(verify().breaks.map(({ kind }) => kind)).toEqual(Array(3).fill('chain_missing'))
  })

  test('putting an older head back, whose MAC is right, once another chain has seen what is missing', async () => {
    const older = attacker
      .query<Record<string, string | number>, [string]>('select * from audit_chains where chain = ?')
      .get(ada)
    const sets = Object.keys(older ?? {}).map((name) => `${name} = ?`)
    await record(ada, 'credential.rotated')
    await record(eve, 'project.created')
    run('delete from audit_entries where developer_id = ? and position = 5', ada)
    run(`update audit_chains set ${sets.join(', ')} where chain = ?`, ...Object.values(older ?? {}), ada)
    expect(firstBreak()).toEqual({ chain: ada, kind: 'chain_set_back', position: 5, entryId: null })
  })

  test('putting the head of one developer into the place of another', () => {
    run('delete from audit_entries where developer_id = ?', eve)
    run('delete from audit_chains where chain = ?', eve)
    run('update audit_chains set chain = ? where chain = ?', eve, ada)
    run('update audit_entries set developer_id = ? where developer_id = ?', eve, ada)
    expect(verify().breaks).toContainEqual(expect.objectContaining({ chain: eve, kind: 'entry_changed' }))
  })

  test('signing a head with a key of their own', () => {
    const keys = { audit: { ...otherKeys.audit, version: 1 } }
    run('update audit_chains set key_version = 2 where chain = ?', ada)
    expect(firstBreak()).toMatchObject({ chain: ada, kind: 'head_changed' })
    runOnSqlite(attacker, resignHeads(testKeys, keys))
    expect(verify().breaks.every(({ kind }) => kind === 'head_changed')).toBe(true)
  })
})

describe('a later entry does not hide', () => {
  test.each([
    ['an edited entry', () => run(`update audit_entries set detail = 'x' where id = ?`, entryAt(ada, 2).id)],
    ['a missing end', () => run('delete from audit_entries where id = ?', entryAt(ada, 4).id)],
    [
      'a missing end with its count',
      () => {
        run('delete from audit_entries where id = ?', entryAt(ada, 4).id)
        run('update audit_chains set entries = 3, last_hash = ? where chain = ?', entryAt(ada, 3).hash, ada)
      },
    ],
  ])('%s', async (_name, attack) => {
    attack()
    await record(ada, 'project.created')
    await record(ada, 'project.deleted')
    expect(verify().breaks.map(({ chain }) => chain)).toEqual([ada])
  })
})

describe('a new key', () => {
  const newKeys = { ...testKeys, audit: { version: 2, key: otherKeys.audit.key } }

  test('takes over the heads, and a forged one stays broken', async () => {
    run('update audit_chains set entries = 1 where chain = ?', eve)
    runOnSqlite(attacker, resignHeads(testKeys, newKeys))
    expect(verifyAuditTrail(attacker, newKeys).breaks.map(({ chain }) => chain)).toEqual([eve])
    store = createStore(opened.database, { keys: newKeys })
    await record(ada, 'project.created')
    expect(verifyAuditTrail(attacker, newKeys).breaks.map(({ chain }) => chain)).toEqual([eve])
  })

  test('makes the old one worthless, and a process with the old one writes nothing', async () => {
    runOnSqlite(attacker, resignHeads(testKeys, newKeys))
    await expect(record(ada, 'project.created')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    run('update audit_chains set key_version = 1')
    expect(verifyAuditTrail(attacker, newKeys).isUnbroken).toBe(false)
  })
})

test('chainName names the installation for entries without a developer', () => {
  expect([chainName({ developerId: null }), chainName({ developerId: 'dev_1' })]).toEqual([
    hostChain,
    'dev_1',
  ])
})
