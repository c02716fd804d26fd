import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'

let server: RunningServer
const otpd = (...args: string[]) => server.otpd(args)
const readEnv = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, key, value]) => [key ?? '', value ?? '']),
  )

beforeAll(async () => {
  server = await startServer({ env: { OTPD_COMPAT: 'twilio-verify,camara' } })
  const login = ['login', '--setup-token', server.setupToken(), '--email', 'a@b.example', '--password-stdin']
  await server.otpd(login, { input: 'correct horse battery' })
  await otpd('project', 'create', 'shop')
})
afterAll(() => server.stop())

test('app create --for saves what a client of Twilio reads, and app env prints the same', async () => {
  const created = await otpd(
    ...'app create web -p shop -e test --env-file web.env --for twilio-verify'.split(' '),
  )
  expect(created.exitCode).toBe(0)
  expect(created.stderr).toContain('Plan free: 5 sends and 10 checks a minute. A code lives 300 s.')
  const path = join(server.home, 'web.env')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const saved = readEnv(readFileSync(path, 'utf8'))
  expect(saved['TWILIO_AUTH_TOKEN']).toBe(
    `${saved['OTPD_CLIENT_SECRET']?.slice(-48)}${saved['OTPD_API_KEY']?.slice(-48)}`,
  )
  const printed = await otpd(...'app env web --for twilio-verify --env-file web.env'.split(' '))
  expect([printed.exitCode, printed.stderr]).toEqual([0, ''])
  const values = readEnv(printed.stdout)
  expect(Object.keys(values)).toEqual([
    'OTPD_URL',
    'TWILIO_ACCOUNT_SID',
    'TWILIO_AUTH_TOKEN',
    'VERIFY_SERVICE_SID',
  ])
  expect(saved).toMatchObject(values)
  const response = await fetch(`${values['OTPD_URL']}/v2/Services/${values['VERIFY_SERVICE_SID']}`, {
    headers: {
      authorization: `Basic ${btoa(`${values['TWILIO_ACCOUNT_SID']}:${values['TWILIO_AUTH_TOKEN']}`)}`,
    },
  })
  expect(response.status).toBe(200)
})

test('app env prints what a client of CAMARA reads', async () => {
  const printed = await otpd(...'app env web --for camara --env-file web.env'.split(' '))
  expect([printed.exitCode, printed.stderr]).toEqual([0, ''])
  const values = readEnv(printed.stdout)
  expect(Object.keys(values)).toEqual([
    'CAMARA_API_ROOT',
    'CAMARA_ISSUER',
    'CAMARA_CLIENT_ID',
    'CAMARA_CLIENT_SECRET',
  ])
  const response = await fetch(`${values['CAMARA_ISSUER']}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: values['CAMARA_CLIENT_ID'] ?? '',
      client_secret: values['CAMARA_CLIENT_SECRET'] ?? '',
    }),
  })
  expect(response.status).toBe(200)
})

test('app env prints what otpd and supabase/auth read', async () => {
  const own = readEnv((await otpd('app', 'env', 'web', '--env-file', 'web.env')).stdout)
  const saved = readEnv(readFileSync(join(server.home, 'web.env'), 'utf8'))
  expect(own).toEqual({
    OTPD_URL: server.url,
    OTPD_CLIENT_ID: saved['OTPD_CLIENT_ID'] ?? '',
    OTPD_CLIENT_SECRET: saved['OTPD_CLIENT_SECRET'] ?? '',
    OTPD_API_KEY: saved['OTPD_API_KEY'] ?? '',
    OTPD_WEBHOOK_SECRET: saved['OTPD_WEBHOOK_SECRET'] ?? '',
  })
  const { stdout, stderr } = await otpd('app', 'env', 'web', '--for', 'supabase', '--json')
  const { data } = JSON.parse(stdout)
  expect(stderr).toBe('')
  expect(data.GOTRUE_HOOK_SEND_SMS_SECRETS).toBe(`v1,${saved['OTPD_WEBHOOK_SECRET']}`)
})

test('app env warns that a server without the setting does not answer as another system', async () => {
  const plain = await startServer()
  try {
    const login = ['login', '--setup-token', plain.setupToken(), '--email', 'a@b.example', '--password-stdin']
    await plain.otpd(login, { input: 'correct horse battery' })
    await plain.otpd(['project', 'create', 'shop'])
    const create = 'app create web -p shop -e test --env-file web.env --for twilio-verify'
    const print = 'app env web --env-file web.env --for twilio-verify'
    for (const command of [create, print])
      expect((await plain.otpd(command.split(' '))).stderr).toContain(
        'start it with OTPD_COMPAT=twilio-verify',
      )
    expect((await plain.otpd('app env web --env-file web.env --for camara'.split(' '))).stderr).toContain(
      'start it with OTPD_COMPAT=camara',
    )
  } finally {
    await plain.stop()
  }
})

test('app env says what is missing, and refuses the credentials of another application', async () => {
  const missing = await otpd('app', 'env', 'web', '--for', 'twilio-verify')
  expect(missing.stdout).toContain('\nTWILIO_AUTH_TOKEN=\n')
  expect(missing.stderr).toContain('--env-file FILE')
  await otpd(...'app create other -p shop -e test --env-file other.env'.split(' '))
  const other = await otpd('app', 'env', 'web', '--env-file', 'other.env')
  expect(other.exitCode).toBe(2)
  expect(other.stderr).toContain('other.env has the credentials of another application.')
  expect((await otpd('app', 'env', 'web', '--for', 'vonage')).exitCode).toBe(2)
})
