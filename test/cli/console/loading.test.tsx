import { afterAll, expect, test } from 'bun:test'
import { App } from '../../../cli/console/App.tsx'
import { renderConsole } from '../../helpers/console-render.tsx'
import { createScriptedServer, errorResponse, pageResponse } from '../cli-fixture.ts'

const server = createScriptedServer(({ path }) =>
  path.startsWith('/v1/otp') || path.startsWith('/v1/webhooks')
    ? pageResponse()
    : errorResponse(503, 'UNAVAILABLE', 'Not now.'),
)
afterAll(() => server.stop())

test('applications that are not loaded are not said to be missing', async () => {
  const app = renderConsole(<App />, { serverUrl: server.url })
  app.console.go('otp')
  await app.waitForText('No codes yet')
  expect(app.frame()).not.toContain('S send)')
  app.console.go('webhooks')
  await app.waitForText('No webhooks yet')
  expect(app.frame()).not.toContain('Create an application first')
  expect(app.frame()).not.toContain('(n ')
})
