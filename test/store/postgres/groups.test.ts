import { afterAll, afterEach, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { Client } from 'pg'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { findRefusals } from '../../../src/domain/model/request-history.ts'
import type { CallingApplication } from '../../../src/domain/model/application.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { openTestPostgres } from '../../helpers/databases.ts'
import { createOtpOperations } from '../../helpers/otp-operations.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

const url = process.env['OTPD_TEST_POSTGRES_URL']

/** Tables in the order in which transactions lock their rows. */
const lockOrder = [
  'applications',
  'otp_requests',
  'otp_deliveries',
  'phones',
  'guard_usage',
  'webhook_endpoints',
  'daily_counts',
  'breakdown_counts',
  'counters',
]

type Query = (this: Client, ...args: unknown[]) => unknown
const query = Client.prototype.query as unknown as Query
const textOf = ([config]: unknown[]) => String(typeof config === 'object' ? Object(config).text : config)

/** Lets a test see, and replace, every statement that is sent. */
function interceptStatements(
  intercept: (client: Client, text: string, values: unknown) => string | undefined,
) {
  return spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, ...args: unknown[]) {
    const replaced = intercept(this, textOf(args), args[1])
    return query.apply(this, replaced === undefined ? args : [replaced])
  } as never)
}

/** The table whose rows a statement locks or changes. No other transaction knows new requests and messages. */
function lockedTable(text: string): string | undefined {
  if (/^insert into "?(otp_requests|otp_deliveries)\b/.test(text)) return undefined
  const changed = /^(?:insert into|update|delete from) "?(\w+)/.exec(text)
  if (changed) return changed[1]
  return text.includes(' for no key update') ? /from "?(\w+)/.exec(text)?.[1] : undefined
}

describe.skipIf(!url)('groups of calls on PostgreSQL', () => {
  let opened: Awaited<ReturnType<typeof openTestPostgres>>
  let second: Database
  let service: TestService
  let otherNode: TestService
  const applications: CallingApplication[] = []
  let numbers = 0
  const newPhone = () => `+1415${2_000_000 + numbers++}`

  beforeAll(async () => {
    opened = await openTestPostgres(url ?? '')
    second = opened.openNode()
    const options = {
      plans: unlimitedPlans,
      env: { OTPD_GUARD_MODE: 'enforce', OTPD_PHONE_SEND_BUDGET: 'enforce' },
    }
    service = await createTestService({ ...options, database: opened.database })
    otherNode = await createTestService({ ...options, database: second })
    const developer = await service.createDeveloper()
    for (let i = 0; i < 3; i++)
      applications.push(
        await service.services.appAuth.authenticate(
          await service.createApplication(developer, { environment: 'live' }),
        ),
      )
  })
  afterEach(() => spyOn(Client.prototype, 'query').mockRestore())
  afterAll(() => opened.dispose())

  const operationsOf = ({ store, clock }: TestService) => createOtpOperations({ store, clock })
  const application = (index: number) => applications[index % applications.length] as CallingApplication

  test('lock the rows of every table in one order, so that no transactions wait in a ring', async () => {
    const transactions = new Map<Client, string[]>()
    const found = new Set<string>()
    interceptStatements((client, text) => {
      if (text.startsWith('begin')) transactions.set(client, [])
      const table = lockedTable(text)
      const locked = transactions.get(client)
      if (!table || !locked || !lockOrder.includes(table)) return undefined
      for (const before of locked)
        if (lockOrder.indexOf(before) > lockOrder.indexOf(table) && !locked.includes(table))
          found.add(`${table} after ${before}`)
      locked.push(table)
      return undefined
    })
    const nodes = [service.services.otp, otherNode.services.otp]
    const { code } = operationsOf(service)
    const phones = Array.from({ length: 4 }, newPhone)
    const mixed = Array.from({ length: 60 }, async (_, i) => {
      const otp = nodes[i % 2] as (typeof nodes)[number]
      const { requestId } = await otp.send(application(i), { phone: phones[i % phones.length] ?? '' })
      if (i % 3 === 0) await otp.cancel(application(i), { requestId })
      else await otp.verify(application(i), { requestId }, { code: await code(requestId, i % 2) })
      if (i % 5 === 0) await otp.resend(application(i), { requestId })
    })
    const failures = (await Promise.allSettled(mixed)).flatMap((one) =>
      one.status === 'rejected' && !(one.reason instanceof ServiceError) ? [one.reason] : [],
    )
    expect(failures).toEqual([])
    expect([...found]).toEqual([])
    const client = new Client(opened.url)
    await client.connect()
    const { rows } = await client.query(
      'select deadlocks from pg_stat_database where datname = current_database()',
    )
    await client.end()
    expect(Number(rows[0].deadlocks)).toBe(0)
  }, 120_000)

  test('of sends and of codes of other systems lock the counts of the guard at once', async () => {
    const locked = new Map<Client, string[]>()
    const rings: string[] = []
    interceptStatements((client, text, values) => {
      if (text.startsWith('begin')) locked.set(client, [])
      if (!text.startsWith('insert into "guard_usage"') || !text.includes('unnest')) return undefined
      // The history of a country is locked only by the transaction that has locked the country.
      const added = (values as [string[]])[0].filter((key) => !key.endsWith(' history'))
      const greatest = locked.get(client)?.toSorted().at(-1) ?? ''
      rings.push(...added.filter((key) => key < greatest).map((key) => `${key} after ${greatest}`))
      locked.get(client)?.push(...added)
      return undefined
    })
    const nodes = [service, otherNode]
    const numbers = [(n: number) => `+4915112${100_000 + n}`, (n: number) => `+33612${100_000 + n}`]
    const calls = Array.from({ length: 60 }, (_, n) => {
      const { services } = nodes[n % 2] as TestService
      const phone = numbers[(n >> 1) % 2]?.(n * 37) ?? ''
      return n % 3 === 0
        ? services.otp.send(application(n), { phone })
        : services.relay.deliver(application(n), { phone, code: '123456' })
    })
    await Promise.allSettled(calls)
    expect(locked.values().some((keys) => keys.length > 0)).toBe(true)
    expect(rings).toEqual([])
  }, 60_000)

  test('of messages that the guard does not judge lock none of its counts', async () => {
    const env = { OTPD_GUARD_MODE: 'monitor', OTPD_PHONE_SEND_BUDGET: 'enforce' }
    const database = opened.openNode()
    const { services } = await createTestService({ plans: unlimitedPlans, env, database })
    const texts: string[] = []
    interceptStatements((_client, text) => void texts.push(text))
    await services.otp.send(application(0), { phone: newPhone() })
    expect(texts.some((text) => text.startsWith('insert into otp_requests'))).toBe(true)
    expect(texts.filter((text) => text.includes('guard_usage'))).toEqual([])
    expect(texts.filter((text) => /"developer_id".*from "webhook_endpoints"/.test(text))).toEqual([])
  })

  test('that are refused at once on two nodes log it once', async () => {
    const phone = newPhone()
    const send = ({ services }: TestService) => services.otp.send(application(0), { phone })
    for (let i = 0; i < 4; i++) await send(service)
    const { requestId } = await send(service)
    const calls = Array.from({ length: 50 }, (_, i) => send(i % 2 ? service : otherNode))
    const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(50)
    const request = await service.store.read.otpRequests.find(requestId)
    // Each node writes down ten a minute.
    expect(request && findRefusals(request)).toMatchObject({ count: 20, reason: 'PHONE_SEND_BUDGET' })
    const ofRequest = `type = 'otp.refused' and request_id = '${requestId}'`
    expect(await countOf(`select count(*) from events where ${ofRequest}`)).toBe(1)
  })

  // `pattern` names the statement that fails: of the facts, of the changes, and the commit.
  const flushes = {
    facts: /from "applications".*for no key update/,
    changes: /^insert into otp_requests\b/,
    commit: /^commit/,
  }
  describe.each(Object.entries(flushes))('whose %s fail', (_, pattern) => {
    test.each(['40001', '40P01'])('with %s run again, and take effect once', async (code) => {
      let failures = 0
      interceptStatements((_client, text) => {
        if (!pattern.test(text) || failures > 0) return undefined
        failures++
        return `do $$ begin raise exception using errcode = '${code}'; end $$`
      })
      const phone = newPhone()
      const otp = operationsOf(service)
      const { requestId } = await otp.send(application(0), { phone })
      expect(failures).toBe(1)
      expect(await service.store.read.otpRequests.find(requestId)).toMatchObject({ phone })
      expect(await countOf(`select count(*) from otp_requests where id = '${requestId}'`)).toBe(1)
    })

    test.each(['25P03', '57014', '53100', '25006'])(
      'with %s are UNAVAILABLE, and change nothing',
      async (code) => {
        const before = await countOf('select count(*) from otp_requests')
        interceptStatements((_client, text) =>
          pattern.test(text) ? `do $$ begin raise exception using errcode = '${code}'; end $$` : undefined,
        )
        const failed = operationsOf(service).send(application(0), { phone: newPhone() })
        expect(await failed.catch((error: unknown) => error)).toMatchObject({ code: 'UNAVAILABLE' })
        spyOn(Client.prototype, 'query').mockRestore()
        expect(await countOf('select count(*) from otp_requests')).toBe(before)
        await operationsOf(service).send(application(0), { phone: newPhone() })
      },
    )

    test('because the connection ends are UNAVAILABLE, and later calls have another one', async () => {
      let losses = 0
      interceptStatements((client, text) => {
        if (!pattern.test(text) || losses > 0) return undefined
        losses++
        const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
        connection.stream.destroy()
        return undefined
      })
      const failed = operationsOf(service).send(application(0), { phone: newPhone() })
      expect(await failed.catch((error: unknown) => error)).toMatchObject({ code: 'UNAVAILABLE' })
      expect(losses).toBe(1)
      await operationsOf(service).send(application(0), { phone: newPhone() })
    })
  })

  test('fail alone if one of them is at fault', async () => {
    const otp = operationsOf(service)
    const bad = 'otp_bad'
    const good = Array.from({ length: 5 }, () => otp.send(application(1), { phone: newPhone() }))
    const failed = service.store.decide({
      preload: { first: () => ({}) },
      decide: () => ({
        result: undefined,
        changes: [{ kind: 'counts', developerId: bad, day: 1, counts: { requests: 1 } }],
      }),
    })
    expect(await failed.catch((error: unknown) => String(error))).toContain('23503')
    expect(await Promise.all(good)).toHaveLength(5)
  })

  test('fail alone if one of them is refused while its rows are named', async () => {
    const otp = operationsOf(service)
    const good = Array.from({ length: 5 }, () => otp.send(application(1), { phone: newPhone() }))
    const failed = service.store.decide({
      preload: {
        first: () => ({}),
        next() {
          throw new ServiceError('INVALID_PHONE_NUMBER', 'of one call')
        },
      },
      decide: () => ({ result: undefined, changes: [] }),
    })
    expect(await failed.catch((error: unknown) => error)).toMatchObject({ message: 'of one call' })
    expect(await Promise.all(good)).toHaveLength(5)
  })

  test('run again alone if another transaction changed what they look for', async () => {
    const { requestId } = await operationsOf(service).send(application(1), { phone: newPhone() })
    const loads = { racing: 0, other: 0 }
    const decide = () => ({ result: undefined, changes: [] })
    const other = service.store.decide({
      preload: {
        first() {
          loads.other++
          return {}
        },
      },
      decide,
    })
    const racing = service.store.decide({
      // As if its look-up had found another request.
      preload: {
        first: () => ({}),
        next: () => (loads.racing++ === 0 ? { request: requestId } : undefined),
      },
      decide,
    })
    await Promise.all([other, racing])
    expect(loads).toEqual({ racing: 2, other: 1 })
  })

  test('are UNAVAILABLE if what they look for changes again and again', async () => {
    const { requestId } = await operationsOf(service).send(application(1), { phone: newPhone() })
    const racing = service.store.decide({
      preload: { first: () => ({}), next: () => ({ request: requestId }) },
      decide: () => ({ result: undefined, changes: [] }),
    })
    expect(await racing.catch((error: unknown) => error)).toMatchObject({ code: 'UNAVAILABLE' })
  })

  test('find the code of an application behind many newer ones of another in few reads', async () => {
    const developer = await service.createDeveloper()
    const [first, second] = await Promise.all(
      [1, 2].map(async () =>
        service.services.appAuth.authenticate(
          await service.createApplication(developer, { environment: 'test' }),
        ),
      ),
    )
    if (!first || !second) throw new Error('no applications')
    const phone = newPhone()
    const otp = operationsOf(service)
    const { requestId } = await otp.send(first, { phone })
    for (let i = 0; i < 60; i++) await otp.send(second, { phone })
    let reads = 0
    interceptStatements((_client, text) => {
      if (/^select\b.*from "otp_requests"/.test(text) && !text.includes(' for no key update')) reads++
      return undefined
    })
    const code = await otp.code(requestId)
    reads = 0
    const { request } = await service.services.otp.verify(first, { phone }, { code })
    expect(request).toMatchObject({ id: requestId, status: 'verified' })
    expect(reads).toBe(3)
  }, 120_000)

  async function countOf(sql: string): Promise<number> {
    const client = new Client(opened.url)
    await client.connect()
    try {
      return Number((await client.query(sql)).rows[0].count)
    } finally {
      await client.end()
    }
  }
})
