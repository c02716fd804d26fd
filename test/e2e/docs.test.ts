import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startServer, type RunningServer } from '../helpers/binary.ts'

let server: RunningServer

beforeAll(async () => void (server = await startServer()))
afterAll(() => server.stop())

test('the executable contains the guides, the docs page, their scripts and style sheets', async () => {
  for (const [path, type, sizeMin] of [
    ['/docs/', 'text/html; charset=utf-8', 3000],
    ['/docs/errors', 'text/html; charset=utf-8', 20_000],
    ['/llms.txt', 'text/plain; charset=utf-8', 3000],
    ['/docs/agents.md', 'text/markdown; charset=utf-8', 5000],
    ['/docs/site.css', 'text/css; charset=utf-8', 1000],
    ['/docs/guides.css', 'text/css; charset=utf-8', 3000],
    ['/docs/site.js', 'text/javascript; charset=utf-8', 10_000],
    ['/docs/guides.js', 'text/javascript; charset=utf-8', 500],
    ['/docs/search.json', 'application/json', 100_000],
    ['/v1/docs', 'text/html; charset=utf-8', 300],
    ['/docs/reference.js', 'text/javascript; charset=utf-8', 50],
    ['/docs/standalone.esm.js', 'text/javascript; charset=utf-8', 500_000],
  ] as const) {
    const response = await fetch(server.url + path)
    expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, type])
    expect((await response.text()).length).toBeGreaterThan(sizeMin)
  }
  const document: unknown = await (await fetch(`${server.url}/v1/openapi.json`)).json()
  expect(document).toMatchObject({ openapi: '3.1.0', paths: { '/v1/otp/send': {} } })
})
