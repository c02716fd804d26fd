import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client } from 'pg'
import { openTestPostgres } from '../../helpers/databases.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { testPostgresUrl } from '../../helpers/postgres.ts'
import { createTestService, type TestApplication, type TestService } from '../../helpers/service.ts'

describe.skipIf(!testPostgresUrl)('a send whose guard rows PostgreSQL does not give', () => {
  let opened: Awaited<ReturnType<typeof openTestPostgres>>
  let client: Client
  let service: TestService
  let application: TestApplication
  const options = {
    plans: unlimitedPlans,
    env: { OTPD_GUARD_MODE: 'enforce', OTPD_PHONE_SEND_BUDGET: 'off' },
  }

  beforeAll(async () => {
    opened = await openTestPostgres(testPostgresUrl ?? '')
    client = new Client(opened.url)
    await client.connect()
    service = await createTestService({ ...options, database: opened.database })
    application = await service.createApplication(await service.createDeveloper(), { environment: 'live' })
    // Makes the row of the country.
    expect(await send(0)).toBe(201)
  })
  afterAll(async () => {
    await client.end()
    await service.dispose()
    await opened.dispose()
  })

  async function send(index: number, node = service): Promise<number> {
    const body = { phone: `+3161234567${index}` }
    return (await node.request('POST', '/v1/otp/send', { as: application, body })).status
  }

  test('because others hold them too long is refused, not let through', async () => {
    const impatient = await createTestService({
      ...options,
      database: opened.openNode({ sessionTimeoutMs: 500 }),
    })
    await client.query('begin; select from guard_usage for update')
    expect(await send(1, impatient)).toBe(503)
    await client.query('rollback')
    expect(await send(1)).toBe(201)
    await impatient.dispose()
  })

  test('because they are damaged passes: the guard fails open', async () => {
    await client.query(`create function fail() returns trigger language plpgsql
      as $$ begin raise exception using errcode = 'XX001'; end $$`)
    await client.query(
      'create trigger fail before insert on guard_usage for each statement execute function fail()',
    )
    expect(await send(2)).toBe(201)
    await client.query('drop trigger fail on guard_usage')
  })
})
