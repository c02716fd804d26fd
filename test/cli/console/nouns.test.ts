import { afterAll, beforeAll, expect, test } from 'bun:test'
import { screens } from '../../../cli/console/screens.ts'
import { isRecord } from '../../../src/shared/json.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

type Screen = keyof typeof screens

/** The screens of each noun of the API, or the reason why it has none. */
const places: Record<string, Screen | readonly Screen[] | { reason: string }> = {
  analytics: ['overview', 'costs'],
  applications: 'apps',
  projects: 'apps',
  otp: 'otp',
  logs: 'logs',
  webhooks: 'webhooks',
  inbox: 'inbox',
  users: 'users',
  audit: 'audit',
  providers: 'providers',
  guard: 'guard',
  developer: 'profile',
  tokens: 'profile',
  auth: { reason: 'the console opens after the login, and `otpd login` is where passwords are typed' },
  routes: 'routes',
  health: { reason: 'the header of every screen shows it' },
  // Not in the API, whose callers are developers: the console reads them on the machine of the server.
  alerts: 'alerts',
  callbacks: { reason: 'providers call it, and no developer may' },
}

let service: TestService
beforeAll(async () => {
  service = await createTestService()
})
afterAll(() => service.dispose())

test('each noun of the API has a screen, or a reason for having none', async () => {
  const response = await service.app.handle(new Request('http://otpd.test/v1/openapi.json'))
  const document: unknown = await response.json()
  const paths = isRecord(document) && isRecord(document.paths) ? Object.keys(document.paths) : []
  const nouns = new Set(paths.flatMap((path) => /^\/v1\/([a-z]+)/.exec(path)?.[1] ?? []))
  expect(nouns.size).toBeGreaterThan(10)
  expect([...nouns].filter((noun) => !(noun in places))).toEqual([])
  const named = Object.values(places)
    .flat()
    .filter((place) => typeof place === 'string')
  expect(Object.keys(screens).filter((name) => !named.some((place) => place === name))).toEqual([])
})
