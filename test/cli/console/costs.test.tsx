import { expect, test } from 'bun:test'
import { App } from '../../../cli/console/App.tsx'
import { renderConsole } from '../../helpers/console-render.tsx'
import { createScriptedServer, errorResponse, pageResponse } from '../cli-fixture.ts'

const counts = { delivered: 0, undelivered: 0, failed: 0, conversion: 50, blocked: 3, medianSeconds: 17 }
const row = (
  key: string,
  name: string,
  sent: number,
  cost: string | null,
  costPerVerified: string | null,
) => ({
  key,
  name,
  sent,
  verified: sent / 2,
  ...counts,
  currency: cost === null ? null : 'EUR',
  cost,
  costPerVerified,
  estimatedCost: cost === null ? null : '12.5',
  unpriced: cost === null ? null : 7,
})

const startServer = (isPriced: boolean) =>
  createScriptedServer(({ path }) => {
    if (!path.startsWith('/v1/analytics/breakdown')) return errorResponse(503, 'UNAVAILABLE', 'Not now.')
    const price = (text: string) => (isPriced ? text : null)
    if (path.includes('by=provider'))
      return pageResponse(
        row('main', 'main', 1, price('1'), null),
        row('spare', 'spare', 1, price('1'), null),
      )
    return path.includes('provider=main')
      ? pageResponse(
          row('ID', 'Indonesia', 4210, price('1263.21'), price('0.6')),
          row('DE', 'Germany', 12_040, price('842.8'), price('0.14')),
        )
      : pageResponse(row('US', 'United States', 64_000, price('505.6'), price('0.0158')))
  })

async function open(columns: number, isPriced = true) {
  const server = startServer(isPriced)
  const app = renderConsole(<App />, { serverUrl: server.url, columns, rows: 24 })
  app.console.go('costs')
  return { server, app }
}

test.each([80, 120, 200])('shows the cost per verified code in %i columns', async (columns) => {
  const { server, app } = await open(columns)
  await app.waitForText(/Indonesia +main +4,210/)
  const lines = app.frame().split('\n')
  const find = (pattern: RegExp) => lines.find((line) => pattern.test(line)) ?? ''
  expect(find(/COST \(EUR\)/)).toMatch(/COST \(EUR\) +PER VERIFIED CODE +MESSAGES +VERIFIED/)
  expect(find(/2,611\.61/)).toMatch(/2,611\.61 +0\.0651 +80,250 +40,125/)
  expect(find(/estimated/)).toContain('estimated by prices: 37.50, without a price: 21 messages')
  expect(find(/Indonesia/)).toMatch(/1,263\.21 +0\.60/)
  expect(find(/United States/)).toMatch(/505\.60 +0\.0158/)
  // The bars have one scale.
  const bar = (country: RegExp) => (find(country).match(/█/g) ?? []).length
  expect(bar(/Indonesia/)).toBeGreaterThan(bar(/United States/))
  for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  app.close()
  await server.stop()
})

test('says what the operator does if no currency is set', async () => {
  const { server, app } = await open(80, false)
  await app.waitForText(/No costs are counted.[^]*otpd docs costs/)
  app.close()
  await server.stop()
})
