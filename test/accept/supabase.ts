import { join } from 'node:path'
import { Client } from 'pg'
import { startTwilioShop } from '../helpers/twilio-shop.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'
import { buildGo, post, start, waitForAnswer } from './go-program.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, run } from './tools.ts'

/** The version whose hook was read. */
const commit = 'bc32168e13fdc928c98b449fc76bc3fdb9a293c5'

/**
 * The "send SMS" hook, as the real supabase/auth calls it. `OTPD_TEST_SUPABASE_AUTH` is its executable; without it, it is
 * built from its repository. `OTPD_TEST_POSTGRES_URL` is a server for its database.
 */
export const supabaseCheck: AcceptCheck = {
  name: 'supabase',
  title: 'supabase/auth with codes that otpd delivers',
  needs: ['go', 'git'],
  run: (print) =>
    inFolder(async (folder) => {
      const server = process.env['OTPD_TEST_POSTGRES_URL']
      if (server === undefined) return print('skipped: OTPD_TEST_POSTGRES_URL names no PostgreSQL server')
      const built = process.env['OTPD_TEST_SUPABASE_AUTH']
      const auth = built ?? (await build(folder))
      const settings = '[limits]\nsendPerMinute = 3\n[guard]\nmode = "enforce"\ndeniedCountries = ["CN"]\n'
      const shop = await startTwilioShop({ settings })
      const database = await createDatabase(server)
      const port = await findUnusedPort()
      const url = `http://127.0.0.1:${port}`
      const { stdout } = await shop.otpd(['app', 'env', 'live', '--for', 'supabase', '--json'])
      const { data: hook }: { data: Record<string, string> } = JSON.parse(stdout)
      const env = {
        ...hook,
        DATABASE_URL: database.url,
        GOTRUE_DB_DRIVER: 'postgres',
        DB_NAMESPACE: 'auth',
        GOTRUE_JWT_SECRET: '0123456789abcdef0123456789abcdef',
        GOTRUE_JWT_AUD: 'authenticated',
        GOTRUE_API_HOST: '127.0.0.1',
        PORT: String(port),
        API_EXTERNAL_URL: url,
        GOTRUE_SITE_URL: 'http://127.0.0.1:3000',
        GOTRUE_EXTERNAL_PHONE_ENABLED: 'true',
        GOTRUE_SMS_AUTOCONFIRM: 'false',
        GOTRUE_SMS_MAX_FREQUENCY: '1s',
        GOTRUE_RATE_LIMIT_SMS_SENT: '10000',
        GOTRUE_LOG_LEVEL: 'error',
      }
      let stop = async () => {}
      try {
        await run(folder, [auth, 'migrate'], env)
        stop = start(folder, [auth, 'serve'], env)
        await waitForAnswer(`${url}/health`)
        const phone = '+14155550132'
        const send = (to: string) => post(`${url}/otp`, { phone: to })
        expectStatus('a send', await send(phone), 200)
        const code = shop.codeOf(phone)
        const wrong = shop.wrongCodeOf(phone)
        const verify = (token: string) => post(`${url}/verify`, { type: 'sms', phone, token })
        expectStatus('a wrong code', await verify(wrong), 403)
        const verified = expectStatus('the right code', await verify(code), 200)
        if (typeof verified['access_token'] !== 'string') throw new Error('the right code gave no session')
        expectStatus('a denied country', await send('+8613800138000'), 403)
        expectStatus('a second phone', await send('+14155550133'), 200)
        expectStatus('the rate', await send('+14155550134'), 429)
        print('sent, checked and signed in; refusals arrive as 403 and 429')
      } finally {
        await stop()
        await shop.stop()
        await database.drop()
      }
    }),
}

type Answer = { status: number; json: Record<string, unknown> }

function expectStatus(title: string, { status, json }: Answer, expected: number): Record<string, unknown> {
  if (status === expected) return json
  throw new Error(`${title}: expected ${expected}, got ${status} ${JSON.stringify(json)}`)
}

async function build(folder: string): Promise<string> {
  const source = join(folder, 'auth')
  await run(folder, ['git', 'init', '--quiet', source])
  const repository = 'https://github.com/supabase/auth'
  await run(source, ['git', 'fetch', '--quiet', '--depth=1', repository, commit])
  await run(source, ['git', 'checkout', '--quiet', 'FETCH_HEAD'])
  return buildGo(source, join(folder, 'supabase-auth'))
}

/** Creates a database as its `hack/init_postgres.sql` does, in a user's name of its own. */
async function createDatabase(server: string) {
  const name = `supabase_${process.pid}`
  const query = async (url: string, ...statements: string[]) => {
    const client = new Client({ connectionString: url })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }
  await query(server, `create database ${name}`, `create role ${name} superuser login password 'root'`)
  const url = new URL(server)
  url.pathname = name
  await query(
    url.href,
    `create schema auth authorization ${name}`,
    `alter role ${name} set search_path = 'auth'`,
    `do $$ begin if not exists (select from pg_roles where rolname = 'postgres') then create role postgres; end if; end $$`,
  )
  url.username = name
  url.password = 'root'
  return {
    url: url.href,
    drop: () => query(server, `drop database ${name} with (force)`, `drop role ${name}`),
  }
}
