import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { migratePostgres } from '../../../src/store/postgres/migrate.ts'
import { postgresMigrations } from '../../../src/store/engine/migration-files.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { requirePrivileges } from '../../../src/store/postgres/privileges.ts'
import { dayMs } from '../../../src/shared/durations.ts'
import { openPatientPostgres } from '../../helpers/databases.ts'
import { testPostgresUrl } from '../../helpers/postgres.ts'
import { createPurger } from '../../helpers/retention.ts'
import { createTestService } from '../../helpers/service.ts'

/** The SQL of the guide, with names of this test: roles belong to the whole server. */
const suffix = crypto.randomUUID().replaceAll('-', '')
const guide = readFileSync(join(import.meta.dir, '../../../src/docs/many-nodes.md'), 'utf8')
const [createRoles = '', grant = '', revoke = ''] = [...guide.matchAll(/```sql\n([\s\S]*?)```/g)].map(
  ([, text = '']) =>
    text
      .replaceAll(/\botpd_(owner|node)\b/g, `otpd_$1_${suffix}`)
      .replaceAll(/\bdatabase otpd\b/g, `database otpd_${suffix}`),
)

describe.skipIf(!testPostgresUrl)('with the roles of the guide', () => {
  const admin = new Client(testPostgresUrl)
  let owner: Client
  let node: Client
  let database: Database
  const urlOf = (role: string) => {
    const url = new URL(testPostgresUrl ?? '')
    url.pathname = `otpd_${suffix}`
    url.username = `otpd_${role}_${suffix}`
    url.password = 'test'
    return url.href
  }

  beforeAll(async () => {
    await admin.connect()
    for (const statement of createRoles.split(';').filter((text) => text.trim() !== ''))
      await admin.query(statement)
    for (const role of ['owner', 'node'])
      await admin.query(`alter role otpd_${role}_${suffix} password 'test'`)
    const superuser = new URL(testPostgresUrl ?? '')
    superuser.pathname = `otpd_${suffix}`
    const granting = new Client(superuser.href)
    await granting.connect()
    await granting.query(grant)
    await granting.end()
    owner = new Client(urlOf('owner'))
    await owner.connect()
    await migratePostgres(owner, { migrate: true })
    await owner.query(revoke)
    node = new Client(urlOf('node'))
    await node.connect()
    database = openPatientPostgres(urlOf('node'))
  })
  afterAll(async () => {
    await database.close()
    await node.end()
    await owner.end()
    await admin.query(`drop database otpd_${suffix} with (force)`)
    await admin.query(`drop role otpd_owner_${suffix}`)
    await admin.query(`drop role otpd_node_${suffix}`)
    await admin.end()
  })

  test('a node serves, and retention deletes audit entries and partitions', async () => {
    const service = await createTestService({ database })
    const ada = await service.createDeveloper()
    const application = await service.createApplication(ada)
    const sent = await service.request('POST', '/v1/otp/send', {
      as: application,
      body: { phone: '+14155550123' },
    })
    expect(sent.status).toBe(201)
    const count = async (table: string) =>
      Number((await owner.query<{ n: string }>(`select count(*) as n from ${table}`)).rows[0]?.n)
    expect(await count('audit_entries')).toBeGreaterThan(0)
    const purge = createPurger(service, { phoneDays: 1, logDays: 1, requestDays: 1, auditDays: 1 })
    await purge()
    expect(await count('otp_requests_rest')).toBe(0)
    service.clock.advance(100 * dayMs)
    await purge()
    expect([await count('otp_requests'), await count('audit_entries')]).toEqual([0, 0])
    const month = new Date(service.clock.now() - 100 * dayMs).toISOString().slice(0, 7).replace('-', '')
    const { rows } = await owner.query(`select to_regclass('otp_requests_${month}')::text as name`)
    expect(rows).toEqual([{ name: null }])
  })

  test.each([
    'create table t (a int)',
    'alter table projects add column a int',
    'drop table projects',
    'truncate otp_requests',
    'create index i on projects (name)',
    'create temporary table t (a int); create function public.f() returns int language sql as $$ select 1 $$',
    `update audit_entries set detail = 'x'`,
    'delete from audit_entries',
    'delete from migrations',
    `select otpd_drop_partition('projects', '1')`,
    `select otpd_drop_partition('otp_requests', 'rest')`,
    `select otpd_make_partition('projects', '1', '1', '2')`,
    `select otpd_make_partition('events', '1; drop table projects', '1', '2')`,
  ])('a node cannot: %s', async (statement) => {
    const failure: unknown = await node.query(statement).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: expect.stringMatching(/^(42501|P0001)$/) })
  })

  test('a node starts with just these privileges, and names those that it lacks', async () => {
    await requirePrivileges(node)
    const lacking = `revoke insert, delete on phones from otpd_node_${suffix};
      revoke usage on sequence phones_keys from otpd_node_${suffix};
      revoke execute on function otpd_drop_partition from otpd_node_${suffix}`
    await owner.query(lacking)
    try {
      const failure: unknown = await requirePrivileges(node).catch((error: unknown) => error)
      expect(failure).toMatchObject({
        name: 'StartRefused',
        message:
          'the role of the database URL lacks privileges: execute on otpd_drop_partition; insert, delete on phones; usage on phones_keys',
      })
    } finally {
      await owner.query(lacking.replaceAll('revoke', 'grant').replaceAll(' from ', ' to '))
    }
  })

  test('a node that loses a privilege tells callers to retry, and which one it lacks', async () => {
    const failures: unknown[] = []
    const denied = openPatientPostgres(urlOf('node'), {
      onUnavailable: (...failure) => failures.push(failure),
    })
    const service = await createTestService({ database: denied })
    const ada = await service.createDeveloper()
    const lacking = `revoke select, insert on projects from otpd_node_${suffix}`
    await owner.query(lacking)
    try {
      for (const body of [{ name: 'shop' }, undefined]) {
        const method = body === undefined ? 'GET' : 'POST'
        const { status, headers } = await service.request(method, '/v1/projects', { as: ada, body })
        expect([status, headers.get('retry-after')]).toEqual([503, '1'])
      }
      expect(failures).toEqual([
        ['42501', 'table projects'],
        ['42501', 'table projects'],
      ])
    } finally {
      await owner.query(lacking.replace('revoke', 'grant').replace(' from ', ' to '))
      await denied.close()
    }
  })

  test('a node does not migrate, and says who may', async () => {
    const available = [...postgresMigrations, { name: '9999_test', sql: '-- expand\ncreate table t (a int)' }]
    expect(migratePostgres(node, { migrate: true, available })).rejects.toMatchObject({
      remedy: expect.stringContaining('otpd migrate up'),
    })
    expect(await migratePostgres(node, { migrate: true })).toEqual({ isNew: false, migrated: [] })
  })
})
