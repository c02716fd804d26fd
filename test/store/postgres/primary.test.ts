import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createPrimary } from '../../../src/store/postgres/primary.ts'
import { connectClient } from '../../../src/store/postgres/connect.ts'
import { prepareSharedDatabase } from '../../../src/store/postgres/prepare.ts'
import { postgresPrograms, startPostgresServer, type PostgresServer } from '../../helpers/postgres-server.ts'
import { findUnusedPort } from '../../helpers/unused-port.ts'

describe.skipIf(postgresPrograms === null)('a database with several servers', () => {
  let servers: PostgresServer[] = []
  beforeAll(async () => {
    servers = await Promise.all([startPostgresServer(), startPostgresServer()])
  })
  afterEach(() => Promise.all(servers.map((server) => setReadOnly(server, 'off'))))
  afterAll(() => Promise.all(servers.map((server) => server.dispose())))

  const urlOf = (...ports: Array<number | undefined>) =>
    `postgres://otpd@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/otpd?target_session_attrs=read-write`

  /** Makes a server one that refuses writes, as a standby does. */
  async function setReadOnly(server: PostgresServer | undefined, value: 'on' | 'off') {
    await server?.query(`alter role otpd set default_transaction_read_only = ${value}`)
  }

  test('is used at the first that takes writes', async () => {
    const [first, second] = servers
    await setReadOnly(first, 'on')
    const url = urlOf(await findUnusedPort(), first?.port, second?.port)
    const client = await connectClient(url, { applicationName: 'otpd/test', waitMs: 0 })
    const { rows } = await client.query<{ port: string }>('show port')
    expect(rows).toEqual([{ port: String(second?.port) }])
    await client.end()
  })

  test('that all refuse writes is away, and waited for', async () => {
    for (const server of servers) await setReadOnly(server, 'on')
    const url = urlOf(...servers.map(({ port }) => port))
    const causes: string[] = []
    const connecting = connectClient(url, {
      applicationName: 'otpd/test',
      waitMs: 20_000,
      onWaiting: (cause) => {
        causes.push(cause)
        void setReadOnly(servers[1], 'off')
      },
    })
    await (await connecting).end()
    expect(causes[0]).toBe('no server of the database takes writes')
    await setReadOnly(servers[1], 'on')
    expect(connectClient(url, { applicationName: 'otpd/test', waitMs: 0 })).rejects.toMatchObject({
      message: 'no server of the database takes writes',
      isUnreachable: true,
    })
  })

  test('and a name that leads to one is waited for by a start until it takes writes', async () => {
    const [server] = servers
    await setReadOnly(server, 'on')
    const causes: string[] = []
    const { migrated } = await prepareSharedDatabase({
      url: server?.url ?? '',
      applicationName: 'otpd/test',
      statements: 'named',
      isUnsafe: true,
      migrate: true,
      waitMs: 20_000,
      now: Date.now,
      onWaiting: (cause) => {
        causes.push(cause)
        void setReadOnly(server, 'off')
      },
    })
    expect(migrated).toEqual([])
    expect(causes[0]).toBe('the database accepts no writes (default_transaction_read_only=on)')
  })

  test('is connected again when another server has become the primary, and only then', async () => {
    const [first, second] = servers
    const opened: string[] = []
    const closed: string[] = []
    const primary = createPrimary(urlOf(first?.port, second?.port), (url) => {
      opened.push(url)
      return { close: async () => void closed.push(url) }
    })
    const [firstUrl, secondUrl] = [first?.url ?? '', second?.url ?? '']
    await primary.connected()
    expect(opened).toEqual([firstUrl])
    await Bun.sleep(600)
    primary.suspect('57P01')
    await Bun.sleep(600)
    expect(opened).toEqual([firstUrl])
    await first?.stop()
    primary.suspect('57P01')
    for (let i = 0; i < 500 && opened.length < 2; i++) await Bun.sleep(20)
    expect(opened).toEqual([firstUrl, secondUrl])
    expect(closed).toEqual([firstUrl])
    await primary.close()
    expect(closed).toEqual([firstUrl, secondUrl])
    await first?.start()
  })
})
