import { describe, expect, test } from 'bun:test'
import type { Destination, Route } from '../../src/domain/model/delivery.ts'
import { createCircuitBreaker } from '../../src/delivery/circuit-breaker.ts'
import { createFailure } from '../../src/delivery/kit/failures.ts'
import { accepted, refused, uncertain } from '../../src/delivery/kit/provider.ts'
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

describe('a circuit breaker', () => {
  const down = refused(createFailure('provider_down', null))
  const fail = (breaker: ReturnType<typeof createCircuitBreaker>, now: number, times = 1) => {
    for (let count = 0; count < times; count++) breaker.recordOutcome(down, now)
  }

  test('opens after five failures in a row, with a backoff that doubles up to five minutes', () => {
    const breaker = createCircuitBreaker()
    let now = 0
    fail(breaker, now, 4)
    expect(breaker.openState(now)).toBeUndefined()
    const backoffSeconds: number[] = []
    for (let round = 0; round < 8; round++) {
      breaker.beginAttempt(now)
      fail(breaker, now)
      const untilMs = breaker.openState(now)?.openUntilMs ?? 0
      backoffSeconds.push((untilMs - now) / 1000)
      now = untilMs
    }
    expect(backoffSeconds).toEqual([5, 10, 20, 40, 80, 160, 300, 300])
  })

  test('half-opens for one probe after the backoff', () => {
    const breaker = createCircuitBreaker()
    fail(breaker, 0, 5)
    expect(breaker.openState(5_000)).toBeUndefined()
    breaker.beginAttempt(5_000)
    expect(breaker.openState(5_000)).toBeDefined()
    expect(breaker.recordOutcome(accepted(null), 5_001)).toBe('closed')
    expect(breaker.openState(5_001)).toBeUndefined()
  })

  test('counts uncertain outcomes, and resets with a success', () => {
    const breaker = createCircuitBreaker()
    for (let count = 0; count < 4; count++) breaker.recordOutcome(uncertain(null), 0)
    breaker.recordOutcome(accepted(null), 0)
    breaker.recordOutcome(uncertain(null), 0)
    expect(breaker.openState(0)).toBeUndefined()
  })

  test.each(['invalid_number', 'content_blocked', 'geo_blocked', 'unknown'] as const)(
    'does not count %s against the provider',
    (failure) => {
      const breaker = createCircuitBreaker()
      for (let count = 0; count < 10; count++) breaker.recordOutcome(refused(createFailure(failure, null)), 0)
      expect(breaker.openState(0)).toBeUndefined()
    },
  )

  test('opens for the pause that a provider asks for, at most five minutes', () => {
    const breaker = createCircuitBreaker()
    breaker.recordOutcome(refused(createFailure('throttled', null, { retryAfterSeconds: 7 })), 0)
    expect(breaker.openState(0)?.openUntilMs).toBe(7_000)
    breaker.recordOutcome(refused(createFailure('throttled', null, { retryAfterSeconds: 9_999 })), 10_000)
    expect(breaker.openState(10_000)?.openUntilMs).toBe(310_000)
    breaker.recordOutcome(refused(createFailure('throttled', null)), 400_000)
    expect(breaker.openState(400_000)?.openUntilMs).toBe(401_000)
  })
})
