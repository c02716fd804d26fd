import { expect } from 'bun:test'
import * as fc from 'fast-check'
import type { GuardedRequest } from '../../../src/domain/guard/guard.ts'
import type { GuardSettings } from '../../../src/domain/guard/rules.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { createGuardFixture, guardOff } from '../../helpers/guard.ts'
import { defineProperty } from '../property.ts'

const quarterMs = 15 * 60_000
const hourMs = 4 * quarterMs
const dayMs = 24 * hourMs

const tightCaps = { applicationPerDay: 4, totalPerDay: 6 }
const noCaps = { applicationPerDay: 0, totalPerDay: 0 }

const uncapped: GuardSettings = {
  ...guardOff,
  deniedCountries: ['CU'],
  unverified: {
    countryPerHour: 2,
    countryPerDay: 3,
    prefixPerHour: 2,
    prefixPerDay: 3,
    addressPerHour: 2,
    addressPerDay: 3,
    addressCountries: 1,
  },
  hourlyPercent: 60,
  dailyPercent: 80,
  caps: noCaps,
}

type Message = { request: GuardedRequest; at: number; verifiedAt: number | null }

/** Reference implementation of the rules in the README, over a list of all messages. */
function createReferenceGuard(settings: GuardSettings) {
  const { mode, caps } = settings
  const messages: Message[] = []
  const phonePrefix = ({ phone }: GuardedRequest) => phone.slice(0, -4)
  const quarterStart = (time: number) => Math.floor(time / quarterMs) * quarterMs
  const dayNumber = (time: number) => Math.floor(time / dayMs)

  function findViolatedRules(request: GuardedRequest, now: number): string[] {
    const rules: string[] = []
    const sameApp = messages.filter((one) => one.request.appId === request.appId)
    const inWindow = (subset: Message[], ms: number) =>
      subset.filter((one) => quarterStart(one.request.createdAt) > now - ms - quarterMs)
    const count = (subset: Message[], ms: number, verified: boolean) =>
      inWindow(subset, ms).filter(({ verifiedAt }) => (verifiedAt !== null) === verified).length
    if (request.country === 'CU') rules.push('COUNTRY_DENIED')
    if (mode === 'enforce' && rules.length > 0) return rules

    const { unverified } = settings
    const country = sameApp.filter((one) => one.request.country === request.country)
    const days = country
      .filter(
        ({ verifiedAt, request: { createdAt } }) =>
          verifiedAt !== null && dayNumber(createdAt) >= dayNumber(now) - 14,
      )
      .map((one) => dayNumber(one.request.createdAt))
    const verifiedMax = Math.max(0, ...days.map((day) => days.filter((other) => other === day).length))
    const hourly = Math.max(unverified.countryPerHour, 0.1 * verifiedMax, 0.6 * count(country, hourMs, true))
    const daily = Math.max(unverified.countryPerDay, 0.8 * verifiedMax, 0.8 * count(country, dayMs, true))
    if (count(country, hourMs, false) + 1 > hourly) rules.push('COUNTRY_HOURLY')
    if (count(country, dayMs, false) + 1 > daily) rules.push('COUNTRY_DAILY')

    const subjects = [
      ['PREFIX', 'prefix', sameApp.filter((one) => phonePrefix(one.request) === phonePrefix(request))],
      ['ADDRESS', 'address', sameApp.filter((one) => one.request.clientIp === request.clientIp)],
    ] as const
    for (const [word, kind, subset] of subjects) {
      if (kind === 'address' && request.clientIp === null) continue
      const verified = count(subset, dayMs, true)
      if (count(subset, hourMs, false) + 1 > Math.max(unverified[`${kind}PerHour`], 0.1 * verified)) {
        rules.push(`${word}_HOURLY`)
      }
      if (count(subset, dayMs, false) + 1 > Math.max(unverified[`${kind}PerDay`], 0.8 * verified)) {
        rules.push(`${word}_DAILY`)
      }
    }
    if (request.clientIp !== null) {
      const sameAddress = sameApp.filter((one) => one.request.clientIp === request.clientIp)
      const seen = new Set(sameAddress.filter(({ at }) => at > now - dayMs).map((one) => one.request.country))
      const proven = new Set(
        sameAddress
          .filter(({ verifiedAt }) => verifiedAt !== null && verifiedAt > now - dayMs)
          .map((one) => one.request.country),
      )
      const unverifiedCountries = new Set(
        [...seen, request.country].filter((one) => !(seen.has(one) && proven.has(one))),
      )
      if (unverifiedCountries.has(request.country) && unverifiedCountries.size > unverified.addressCountries)
        rules.push('ADDRESS_COUNTRIES')
    }
    if (mode === 'enforce' && rules.length > 0) return rules

    const today = messages.filter(({ at }) => dayNumber(at) === dayNumber(now))
    const ownToday = today.filter((one) => one.request.appId === request.appId)
    if (caps.applicationPerDay > 0 && ownToday.length >= caps.applicationPerDay)
      rules.push('APPLICATION_DAILY')
    if (mode === 'enforce' && rules.length > 0) return rules
    if (caps.totalPerDay > 0 && today.length >= caps.totalPerDay) rules.push('TOTAL_DAILY')
    return rules
  }

  return {
    messages,
    evaluate(request: GuardedRequest, now: number) {
      const rules = findViolatedRules(request, now)
      if (mode === 'monitor' || rules.length === 0) messages.push({ request, at: now, verifiedAt: null })
      return rules
    },
  }
}

type Step =
  | { kind: 'send'; app: string; country: string; phone: string; ip: string | null }
  | { kind: 'verify'; which: number }
  | { kind: 'wait'; ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      app: fc.constantFrom('app_1', 'app_1', 'app_2'),
      country: fc.constantFrom('NL', 'NL', 'NL', 'BE', 'FR', 'CU'),
      phone: fc.constantFrom('+31611110001', '+31611110002', '+31622220001', '+32470110001'),
      ip: fc.constantFrom(null, '203.0.113.1', '203.0.113.1', '203.0.113.1', '203.0.113.2'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('verify' as const), which: fc.nat(3) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.oneof(
        fc.constantFrom(60_000, quarterMs - 1, quarterMs, hourMs - 1, hourMs, 5 * hourMs, dayMs, 13 * dayMs),
        // More than an hour and less than a day: otherwise daily rules are rarely reached.
        fc.constant(5 * quarterMs),
      ),
    }),
  },
)

const rules = [
  'ADDRESS_COUNTRIES',
  'ADDRESS_DAILY',
  'ADDRESS_HOURLY',
  'APPLICATION_DAILY',
  'COUNTRY_DAILY',
  'COUNTRY_DENIED',
  'COUNTRY_HOURLY',
  'PREFIX_DAILY',
  'PREFIX_HOURLY',
  'TOTAL_DAILY',
]

const guardProperty = (mode: 'enforce' | 'monitor') =>
  defineProperty(`the guard in mode ${mode} judges as its rules say`, 200, async () => {
    const { database, dispose } = await openTestSqlite()
    const { guardWindows, guardDays, guardAddressCountries } = database.tables
    const store = createStore(database)
    const seen = new Set<string>()
    const steps = fc.array(step, { minLength: 20, maxLength: 60 })
    const property = fc.asyncProperty(fc.boolean(), steps, async (capped, list) => {
      await database.write(async (tx) => {
        for (const table of [guardWindows, guardDays, guardAddressCountries]) await tx.delete(table)
      })
      const settings = { ...uncapped, mode, caps: capped ? tightCaps : noCaps }
      const { clock, evaluate, verify, createRequest } = createGuardFixture(store, settings)
      const referenceGuard = createReferenceGuard(settings)
      for (const one of list) {
        if (one.kind === 'wait') clock.advance(one.ms)
        else if (one.kind === 'send') {
          const { app: appId, country, phone, ip: clientIp } = one
          const request = createRequest({ appId, country, phone, clientIp })
          const expected = referenceGuard.evaluate(request, clock.now())
          expect((await evaluate(request)).violatedRules.map(String)).toEqual(expected)
          for (const rule of expected) seen.add(rule)
        } else {
          const unverified = referenceGuard.messages.filter(({ verifiedAt }) => verifiedAt === null)
          const message = unverified.at(-1 - one.which)
          if (!message) continue
          message.verifiedAt = clock.now()
          await verify(message.request)
        }
      }
    })
    const close = async () => {
      await dispose()
      // Every rule blocked something, except the list, which is empty here.
      expect([...seen].toSorted()).toEqual(rules)
    }
    return { property, close }
  })

export const guardProperties = [guardProperty('enforce'), guardProperty('monitor')]
