import { expect, test } from 'bun:test'
import { App } from '../../../cli/console/App.tsx'
import { renderConsole } from '../../helpers/console-render.tsx'
import { createScriptedServer, errorResponse, pageResponse } from '../cli-fixture.ts'

const provider = (name: string, price: string | null, rest: object = {}) => ({
  provider: name,
  price,
  conversion: 87.4,
  samples: 412,
  costPerVerified: price === null ? null : String(Number(price) / 0.874),
  basis: 'country',
  circuit: 'closed',
  silent: false,
  ...rest,
})

const routes = [
  {
    channel: 'sms',
    country: 'DE',
    strategy: 'cost',
    reason: 'others_silent',
    providers: [
      provider('spare', '0.071'),
      provider('main', '0.065', { silent: true, conversion: 41 }),
      provider('third', null, { circuit: 'open', samples: 3, basis: 'region' }),
    ],
    firstProvider: 'main',
    currency: 'EUR',
    sent: 12_040,
    saved: '212.4',
  },
  {
    channel: 'whatsapp',
    country: 'US',
    strategy: 'order',
    reason: null,
    providers: [provider('main', '0.0079')],
    firstProvider: 'main',
    currency: 'EUR',
    sent: 7,
    saved: null,
  },
]

async function open(columns: number, rows: typeof routes) {
  const server = createScriptedServer(({ path }) =>
    path === '/v1/routes' ? pageResponse(...rows) : errorResponse(503, 'UNAVAILABLE', 'Not now.'),
  )
  const app = renderConsole(<App />, { serverUrl: server.url, columns, rows: 24 })
  app.console.go('routes')
  return { server, app }
}

test.each([80, 120, 200])('shows what a message would take, and why, in %i columns', async (columns) => {
  const { server, app } = await open(columns, routes)
  await app.waitForText(/Germany.* cost +spare +0\.0812.* 212\.40/)
  const find = (pattern: RegExp) =>
    app
      .frame()
      .split('\n')
      .find((line) => pattern.test(line)) ?? ''
  expect(find(/United States/)).toMatch(/order +main +0\.0090 .* -/)
  expect(app.frame()).toContain('Germany, SMS: codes of the better one are not verified at the moment')
  expect(find(/0\.071 /)).toMatch(/spare +0\.071 +87% +412 +0\.0812/)
  expect(find(/0\.065 /)).toMatch(/main .* 41% .* silent/)
  expect(find(/third/)).toMatch(/third +- .* 3 +- .*circuit open/)
  app.press('j')
  await app.waitForText('United States, WhatsApp: in the order of the configuration')
  for (const line of app.frame().split('\n')) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  app.close()
  await server.stop()
})

test('keeps its size where the providers do not fit', async () => {
  const many = Array.from({ length: 12 }, (_, index) => provider(`carrier${index}`, '0.01'))
  const { server, app } = await open(
    80,
    routes.map((route) => ({ ...route, providers: many })),
  )
  await app.waitForText(/↓ \d+ more/)
  expect(app.frame().split('\n').length).toBeLessThanOrEqual(24)
  app.close()
  await server.stop()
})

test('says how countries appear if there are none', async () => {
  const { server, app } = await open(80, [])
  await app.waitForText('Countries appear once codes there were verified or expired.')
  app.close()
  await server.stop()
})
