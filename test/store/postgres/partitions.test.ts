import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { idTime, lowestId } from '../../../src/domain/model/ids.ts'
import { migratePostgres } from '../../../src/store/postgres/migrate.ts'
import { postgresMigrations } from '../../../src/store/engine/migration-files.ts'
import { partitions, planEntries, planMonth, planMonths } from '../../../src/store/postgres/partitions.ts'
import { createMigratedPostgres, openPatientPostgres } from '../../helpers/databases.ts'
import { describeEachPostgres, testPostgresUrl } from '../../helpers/postgres.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { dayMs } from '../../../src/shared/durations.ts'

const now = Date.parse('2026-11-20T12:00:00Z')
const at = (text: string) => Date.parse(text)

describe('the plan of partitions', () => {
  test('has a month for each id, without gaps', () => {
    const months = planMonths('otp_requests', at('2025-12-31T23:59:59.999Z'), now)
    expect(months.map(({ suffix }) => suffix).join(' ')).toBe(
      '202512 202601 202602 202603 202604 202605 202606 202607 202608 202609 202610 202611 202612 202701',
    )
    for (const [index, { lower }] of months.slice(1).entries()) expect(months[index]?.upper).toBe(lower)
    expect(planMonth('webhook_attempts', now).lower).toStartWith('dlv_')
    expect(idTime(lowestId('otp', now))).toBe(now)
  })

  test('has ranges of the log for a month at the rate of the past, or for a million entries', () => {
    expect(planEntries(1, 0, undefined, now)).toEqual({ suffix: '1', lower: '1', upper: '1000001' })
    const earlier = { seq: 1, at: now - 10 * dayMs }
    expect(planEntries(9, 10_000_001, earlier, now).upper).toBe(String(9 + 30_000_000))
  })
})

describeEachPostgres('migration 0020', (open) => {
  test('keeps the rows, compares all text bytewise, and deletes what belongs to deleted rows', async () => {
    const { client } = await open()
    const number = postgresMigrations.findIndex(({ name }) => name.endsWith('_partitions'))
    await migratePostgres(client, { migrate: true, available: postgresMigrations.slice(0, number) })
    await client.query(`
      insert into developers (id, plan, virtual_phone, status, created_at, updated_at, email)
        values ('dev_1', 'free', '+1', 'active', 1, 1, 'a');
      insert into projects values ('prj_1', 'dev_1', 'p', null, 1, 1);
      insert into applications (id, developer_id, project_id, name, environment, status, otp_ttl_seconds, client_id_salt,
        client_id_hash, client_secret_salt, client_secret_hash, client_secret_preview, api_key_salt, api_key_hash,
        api_key_preview, webhook_secret, created_at, updated_at)
        values ('app_1', 'dev_1', 'prj_1', 'a', 'live', 'active', 60, '', '', '', '', '', '', '', '', '', 1, 1);
      insert into otp_requests (id, developer_id, project_id, app_id, environment, phone, status, channel, code_salt,
        code_hash, created_at, sent_at, expires_at, updated_at)
        select 'otp_' || n, 'dev_1', 'prj_1', 'app_1', 'live', '+1', 'pending', 'sms', '', '', 1, 1, 1, 1
        from generate_series(1, 5) n;
      insert into otp_deliveries (request_id, message, channels, status, created_at, updated_at)
        select 'otp_' || n, 0, 'sms', 'pending', 1, 1 from generate_series(1, 5) n;
      insert into events (seq, id, type, developer_id, at) select n, 'evt_' || n, 'x', 'dev_1', n from generate_series(1, 5) n;
      insert into webhook_endpoints (id, developer_id, app_id, url, events, status, created_at, updated_at)
        values ('whk_1', 'dev_1', 'app_1', 'https://a', '*', 'enabled', 1, 1);
      insert into webhook_deliveries (id, endpoint_id, event_seq, status, created_at)
        select 'dlv_' || n, 'whk_1', n, 'pending', 1 from generate_series(1, 5) n;
      insert into webhook_attempts (delivery_id, number, at, duration_ms)
        select 'dlv_' || n, 1, 1, 1 from generate_series(1, 5) n`)
    await migratePostgres(client, { migrate: true })
    const tables = ['otp_requests', 'otp_deliveries', 'events', 'webhook_deliveries', 'webhook_attempts']
    const count = async (name: string) =>
      Number((await client.query<{ n: string }>(`select count(*)::text as n from ${name}`)).rows[0]?.n)
    for (const name of tables) expect([name, await count(name)]).toEqual([name, 5])
    await client.query(`delete from otp_requests where id = 'otp_1'`)
    expect(await count('otp_deliveries')).toBe(4)
    await client.query(`delete from webhook_endpoints`)
    expect([await count('webhook_deliveries'), await count('webhook_attempts')]).toEqual([0, 0])
    // Columns of no index are joined and sorted by nothing; ids have indexes, and so do the keys of later tables.
    const { rows } = await client.query(
      `select c.relname, a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
       where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0
         and a.attcollation not in (0, '"C"'::regcollation)
         and (a.attname = 'id' or a.attname like '%\\_id' or exists (
           select 1 from pg_index i where i.indrelid = c.oid and a.attnum = any (i.indkey)))`,
    )
    expect(rows).toEqual([])
  })
})

describe.skipIf(!testPostgresUrl)('partitions', () => {
  let database: Database
  let migrated: Awaited<ReturnType<typeof createMigratedPostgres>>
  beforeAll(async () => {
    migrated = await createMigratedPostgres(testPostgresUrl ?? '')
    database = openPatientPostgres(migrated.url)
  })
  afterAll(async () => {
    await database.close()
    await migrated.dispose()
  })

  /** Lists the partitions with the numbers of their rows. */
  const list = async (table: string) => {
    const { rows } = await migrated.client.query<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = '${table}'::regclass order by 1`,
    )
    const counts: Array<[string, number]> = []
    for (const { name } of rows) {
      const counted = await migrated.client.query<{ n: string }>(`select count(*)::text as n from ${name}`)
      counts.push([name.slice(table.length + 1), Number(counted.rows[0]?.n)])
    }
    return counts
  }
  const insertRequest = (time: string) =>
    migrated.client.query(
      `insert into otp_requests (id, developer_id, project_id, app_id, environment, phone, status, channel, code_salt,
         code_hash, created_at, sent_at, expires_at, updated_at)
       values ($1, 'd', 'p', 'a', 'live', '+1', 'expired', 'sms', '', '', $2, 1, 1, 1)`,
      [lowestId('otp', at(time)), at(time)],
    )
  const prepareAll = async () => {
    while (await database.write((tx) => partitions.prepareNext(tx, now)));
  }

  test('are made ahead, also for rows that have none, which keep what belongs to them', async () => {
    for (const time of ['2026-08-03', '2026-11-03', '2026-11-04']) await insertRequest(time)
    await migrated.client.query(
      `insert into otp_deliveries (request_id, message, channels, status, created_at, updated_at)
       select id, 0, 'sms', 'sent', 1, 1 from otp_requests`,
    )
    await migrated.client.query(
      `insert into events (seq, type, developer_id, at) select n, 'x', 'd', n from generate_series(1, 10) n;
       update counters set value = 10`,
    )
    await prepareAll()
    const expected: Array<[string, number]> = [
      ['202608', 1],
      ['202611', 2],
      ['202612', 0],
      ['202701', 0],
      ['rest', 0],
    ]
    expect(await list('otp_requests')).toEqual(expected)
    expect(await list('otp_deliveries')).toEqual(expected)
    expect(await list('webhook_attempts')).toHaveLength(4)
    expect(await list('events')).toEqual([
      ['1', 10],
      ['1000001', 0],
      ['rest', 0],
    ])
    expect(await prepareAll()).toBeUndefined()
  })

  test('are dropped once every row is too old, with the rows that belong to them', async () => {
    const drop = (time: string) => database.write((tx) => partitions.dropOldest(tx, 'otp_requests', at(time)))
    expect(await drop('2026-08-31T23:59:59Z')).toBeFalse()
    expect(await drop('2026-09-01T00:05:00Z')).toBeTrue()
    expect(await drop('2026-09-01T00:05:00Z')).toBeFalse()
    expect((await list('otp_deliveries')).map(([name]) => name)).not.toContain('202608')
    // The newest range of the log is never dropped, however old it is.
    expect(await database.write((tx) => partitions.dropOldest(tx, 'events', now))).toBeFalse()
    await migrated.client.query('update counters set value = 1000001')
    expect(await database.write((tx) => partitions.dropOldest(tx, 'events', now))).toBeTrue()
  })

  test('wait a second at most for others, and are left as they are then', async () => {
    const holder = await migrated.connect?.()
    await holder?.query('begin')
    await holder?.query('select 1 from otp_requests limit 1')
    expect(
      await database.write((tx) => partitions.dropOldest(tx, 'otp_requests', at('2027-06-01'))),
    ).toBeFalse()
    await holder?.query('commit')
    await holder?.end()
  })

  test('of other months are not read by a scan of the one that comes of age', async () => {
    const { rows } = await migrated.client.query<{ 'QUERY PLAN': string }>(
      `explain select id from otp_requests where id > '${lowestId('otp', at('2026-11-10'))}'
         and id < '${lowestId('otp', at('2026-11-20'))}' order by id limit 100`,
    )
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('otp_requests_202611')
    expect(plan).not.toMatch(/otp_requests_(202612|202701|rest)/)
  })
})
