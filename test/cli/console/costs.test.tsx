import { expect, test } from 'bun:test'
import { App } from '../../../cli/console/App.tsx'
import { renderConsole } from '../../helpers/console-render.tsx'
import { createScriptedServer, errorResponse, pageResponse } from '../cli-fixture.ts'

const counts = { delivered: 0, undelivered: 0, failed: 0, conversion: 50, blocked: 3, medianSeconds: 17 }
const row = (
  provider: string,
  [key, name]: [string, string],
  sent: number,
  [cost, costPerVerified, saved]: [string | null, string | null, string | null],
) => ({
  key,
  name,
  provider,
  sent,
  verified: sent / 2,
  ...counts,
  currency: cost === null ? null : 'EUR',
  cost,
  costPerVerified,
  saved,
  estimatedCost: cost === null ? null : '12.5',
  unpriced: cost === null ? null : 7,
  relayed: sent === 4210 ? 12 : 0,
  relayedCost: cost === null ? null : sent === 4210 ? '3.5' : '0',
})

const startServer = (isPriced: boolean, saved: (text: string) => string | null) =>
  createScriptedServer(({ path }) => {
    if (!path.startsWith('/v1/analytics/costs?range=30d'))
      return errorResponse(503, 'UNAVAILABLE', 'Not now.')
    const price = (text: string) => (isPriced ? text : null)
    return pageResponse(
      row('main', ['ID', 'Indonesia'], 4210, [price('1263.21'), price('0.6'), saved('0')]),
      row('main', ['DE', 'Germany'], 12_040, [price('842.8'), price('0.14'), null]),
      row('spare', ['US', 'United States'], 64_000, [price('505.6'), price('0.0158'), saved('-101.5')]),
    )
  })

async function open(columns: number, isPriced = true, saved: (text: string) => string | null = () => null) {
  const server = startServer(isPriced, saved)
  const app = renderConsole(<App />, { serverUrl: server.url, columns, rows: 24 })
  app.console.go('costs')
  return { server, app }
}

test.each([80, 120, 200])('shows the cost per verified code in %i columns', async (columns) => {
  const { server, app } = await open(columns)
  await app.waitForText(/Indonesia +main +4,210/)
  const lines = app.frame().split('\n')
  const find = (pattern: RegExp) => lines.find((line) => pattern.test(line)) ?? ''
  expect(find(/COST \(EUR\)/)).toMatch(/COST \(EUR\) +PER VERIFIED +MESSAGES +VERIFIED/)
  expect(find(/2,611\.61/)).toMatch(/2,611\.61 +0\.0650 +80,262 +40,125/)
  expect(find(/estimated/)).toContain('estimated by prices: 37.50, codes of other systems: 12 for 3.50')
  expect(find(/Indonesia/)).toMatch(/1,263\.21 +0\.6000/)
  expect(app.frame()).not.toMatch(/SAVED|Strategies/)
  expect(find(/United States/)).toMatch(/505\.60 +0\.0158/)
  // The bars have one scale.
  const bar = (country: RegExp) => (find(country).match(/█/g) ?? []).length
  expect(bar(/Indonesia/)).toBeGreaterThan(bar(/United States/))
  for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  app.close()
  await server.stop()
})

test('keeps the names of the sums apart in 60 columns', async () => {
  const { server, app } = await open(60)
  await app.waitForText(/Indonesia +main +4,210/)
  expect(app.frame()).toMatch(/COST \(EUR\) +PER VERIFIED +MESSAGES +VERIFIED/)
  app.close()
  await server.stop()
})

test.each([80, 120, 200])('shows what strategies saved in %i columns', async (columns) => {
  const { server, app } = await open(columns, true, (text) => text)
  await app.waitForText('Strategies cost about 101.50 EUR more, compared with the fixed order')
  const lines = app.frame().split('\n')
  const find = (pattern: RegExp) => lines.find((line) => pattern.test(line)) ?? ''
  expect(find(/PER CODE/)).toMatch(/CONV .*PER CODE +SAVED/)
  expect(find(/Indonesia/)).toMatch(/0\.6000 +0\.00/)
  expect(find(/Germany/)).toMatch(/0\.1400 +-/)
  expect(find(/United States/)).toMatch(/0\.0158 +-101\.50/)
  for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  app.close()
  await server.stop()
})

test.each([80, 120, 200])('cuts no amount of a large company in %i columns', async (columns) => {
  const name = 'infobip-asia-pacific-premium-two'
  const server = createScriptedServer(({ path }) =>
    path.startsWith('/v1/analytics/costs')
      ? pageResponse(
          row(name, ['VC', 'St. Vincent & Grenadines'], 17_976_170, ['1466086.38', '0.0816', '-164741.02']),
          row('spare', ['US', 'United States'], 64_000, ['505.6', '0.0158', '1.5']),
        )
      : errorResponse(503, 'UNAVAILABLE', 'Not now.'),
  )
  const app = renderConsole(<App />, { serverUrl: server.url, columns, rows: 24 })
  app.console.go('costs')
  await app.waitForText('-164,741.02')
  const lines = app.frame().split('\n')
  const line = lines.find((text) => text.includes('17,976,170') && text.includes('164,741')) ?? ''
  expect(line).toMatch(/17,976,170 .*1,466,086\.38 +0\.0816 +-164,741\.02/)
  expect(app.frame()).toMatch(/without a price: 14\s+messages/)
  for (const text of lines) expect(Bun.stringWidth(text)).toBeLessThanOrEqual(columns)
  app.close()
  await server.stop()
})

test('says what the operator does if no currency is set', async () => {
  const { server, app } = await open(80, false)
  await app.waitForText(/No costs are counted.[^]*otpd docs costs/)
  app.close()
  await server.stop()
})
