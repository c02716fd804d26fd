import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { requestTokens } from '../http.ts'
import { textAt, type Json } from '../json.ts'
import type { World } from '../world.ts'

/** Creates accounts: the first by its setup token, the others as the operator does. One is disabled, one deleted. */
export async function createAccounts(world: World, dataDir: string): Promise<void> {
  const { accounts, operate, call } = world
  accounts.set('ada', { email: 'ada@example.com', password: 'correct horse battery' })
  accounts.set('bob', { email: 'bob@example.com', password: 'staple staple staple' })
  const { email, password } = world.account('ada')
  const setup = await requestTokens(world.server().url, {
    grant_type: 'urn:otpd:setup-token',
    setup_token: readFileSync(join(dataDir, 'setup-token'), 'utf8').trim(),
    email,
    password,
    name: 'Ada Lovelace',
  })
  world.holdToken('ada', setup)

  await createAccount(world, 'bob@example.com', 'Bob', world.account('bob').password)
  await createAccount(world, 'carol@example.com', 'Carol', 'a password of carol')
  await createAccount(world, 'dan@example.com', 'Dan', 'a password of dan')
  await operate(['admin', 'set-plan', 'ada@example.com', 'team'])
  await operate(['admin', 'disable', 'carol@example.com'])
  await operate(['admin', 'delete', 'dan@example.com'])
  await operate(['admin', 'reset-password', 'bob@example.com', '--password-stdin'], 'another one of bob')
  accounts.set('bob', { email: 'bob@example.com', password: 'another one of bob' })
  await call('ada', 'PATCH', '/v1/developer/me', { body: { company: 'Analytical Engines' } })
}

export const createAccount = (world: World, email: string, name: string, password: string) =>
  world.operate(['admin', 'create', '--email', email, '--name', name, '--password-stdin'], password)

/** Creates projects and applications: live, test, disabled, deleted, with rotated credentials and message settings. */
export async function createApplications(world: World): Promise<void> {
  const { call } = world
  const shop = await createProject(world, 'ada', { name: 'shop', description: 'The shop, and its app' })
  const empty = await createProject(world, 'ada', { name: 'empty' })
  const gone = await createProject(world, 'ada', { name: 'gone' })
  await call('ada', 'PATCH', `/v1/projects/${empty}`, { body: { name: 'still empty' } })
  await call('ada', 'DELETE', `/v1/projects/${gone}`)
  const office = await createProject(world, 'bob', { name: 'office' })

  await createApplication(world, 'web', 'ada', shop, 'live')
  await createApplication(world, 'sandbox', 'ada', shop, 'test')
  await createApplication(world, 'legacy', 'ada', shop, 'live')
  await createApplication(world, 'removed', 'ada', shop, 'test')
  await createApplication(world, 'desk', 'bob', office, 'live')

  const web = world.application('web')
  for (const [type, field] of rotations) {
    const rotated = await call('ada', 'POST', `/v1/applications/${web.id}/rotate/${type}`)
    web[field] = textAt(rotated, 'data', 'value')
  }
  const messages = {
    otpTtlSeconds: 600,
    defaultLocale: 'de',
    webOtpDomain: 'shop.example.com',
    androidAppHash: 'AbCdEfGhIjK',
  }
  await call('ada', 'PATCH', `/v1/applications/${web.id}`, { body: messages })
}

const rotations = [
  ['secret', 'clientSecret'],
  ['api', 'apiKey'],
  ['webhook_secret', 'webhookSecret'],
] as const

async function createProject(world: World, owner: string, body: Json): Promise<string> {
  return textAt(await world.call(owner, 'POST', '/v1/projects', { body }), 'data', 'id')
}

async function createApplication(
  { call, applications }: World,
  name: string,
  owner: string,
  projectId: string,
  environment: 'live' | 'test',
): Promise<void> {
  const body = { name, projectId, environment }
  const created = await call(owner, 'POST', '/v1/applications', { body })
  const read = (field: string) => textAt(created, 'data', field)
  applications.set(name, {
    id: read('id'),
    owner,
    webhookSecret: read('webhookSecret'),
    clientId: read('clientId'),
    clientSecret: read('clientSecret'),
    apiKey: read('apiKey'),
  })
}

/** Creates an endpoint. Its path selects the receiver's response status. @returns its id */
export async function createEndpoint(
  world: World,
  application: string,
  path: string,
  events: string[],
  more: { [name: string]: Json } = {},
): Promise<string> {
  const { id: appId, owner } = world.application(application)
  const body = { appId, url: `${world.receivers.url}${path}`, events, ...more }
  return textAt(await world.call(owner, 'POST', '/v1/webhooks', { body }), 'data', 'id')
}
