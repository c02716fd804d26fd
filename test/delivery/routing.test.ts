import { describe, expect, test } from 'bun:test'
import type { Destination, Route } from '../../src/domain/model/delivery.ts'
import { createRouting, defaultRoutes } from '../../src/delivery/routing.ts'

const dutch: Destination = {
  environment: 'live',
  isVirtual: false,
  phone: '+31612345678',
  country: 'NL',
  appId: 'app_one',
}
const route = (changes: Partial<Route>): Route => ({
  channel: 'sms',
  countries: [],
  prefixes: [],
  applications: [],
  providers: ['main'],
  ...changes,
})
const routedProviders = (routes: Route[], destination = dutch) =>
  createRouting(routes)
    .routesFor(destination)
    .candidatesFor(['sms'])
    .map(({ provider }) => provider)

describe('only the first matching route counts', () => {
  test.each<[string, Partial<Route>, boolean]>([
    ['for every phone', {}, true],
    ['of the country', { countries: ['BE', 'NL'] }, true],
    ['of another country', { countries: ['BE'] }, false],
    ['of the prefix', { prefixes: ['+32', '+316'] }, true],
    ['of another prefix', { prefixes: ['+3161235'] }, false],
    ['of the application', { applications: ['app_two', 'app_one'] }, true],
    ['of another application', { applications: ['app_two'] }, false],
    [
      'of country and application, one of them wrong',
      { countries: ['NL'], applications: ['app_two'] },
      false,
    ],
  ])('%s', (_, changes, isMatch) => {
    const routes = [
      route({ ...changes, providers: ['special', 'second'] }),
      route({ providers: ['general'] }),
    ]
    expect(routedProviders(routes)).toEqual(isMatch ? ['special', 'second'] : ['general'])
  })

  test('a phone without a country matches no route with countries', () => {
    expect(routedProviders([route({ countries: ['NL'] })], { ...dutch, country: null })).toEqual([])
  })
})

test('channels are in the order of their routes', () => {
  const routes = [
    route({ channel: 'whatsapp' }),
    route({ countries: ['US'] }),
    route({ channel: 'voice' }),
    route({}),
  ]
  expect(createRouting(routes).routesFor(dutch).channels).toEqual(['whatsapp', 'voice', 'sms'])
})

test('messages stay in the inbox without providers, from test applications and to virtual numbers', () => {
  expect(routedProviders([])).toEqual(['inbox'])
  expect(routedProviders([route({})], { ...dutch, environment: 'test' })).toEqual(['inbox'])
  expect(routedProviders([route({})], { ...dutch, isVirtual: true })).toEqual(['inbox'])
})

test('providers without routes serve all their channels, in their order', () => {
  const routes = defaultRoutes([
    { name: 'one', channels: ['sms'] },
    { name: 'two', channels: ['sms', 'whatsapp'] },
  ])
  expect(routes.map(({ channel, providers }) => [channel, providers])).toEqual([
    ['sms', ['one', 'two']],
    ['whatsapp', ['two']],
  ])
})
