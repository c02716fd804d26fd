import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { runToEnd, startServer, type RunningServer } from '../helpers/binary.ts'
import { readEventStream } from '../helpers/event-stream.ts'
import { findProgram } from '../helpers/external-program.ts'
import { proxyRecipes, startProxyRecipe, type ProxyRun } from '../helpers/proxy-recipes.ts'
import { logIn, makeServerHome, sendOtp, type WebhookClient } from '../helpers/webhook-client.ts'

/** The recipes for proxies, in front of the compiled server. The client has another address than the proxy. */

const clientAddress = '127.0.0.2'
const home = makeServerHome()
let server: RunningServer
let client: WebhookClient
beforeAll(async () => {
  server = await startServer({ ...home, env: { ...home.env, OTPD_TRUSTED_PROXIES: '127.0.0.1' } })
  client = await logIn(server.url)
})
afterAll(async () => {
  await server.stop()
  rmSync(home.home, { recursive: true, force: true })
})

for (const recipe of proxyRecipes) {
  const missing = [recipe.name, 'curl', 'openssl'].filter((name) => findProgram(name) === null)
  if (missing.length > 0)
    process.stderr.write(`Skipped: the recipe ${recipe.file}. It needs ${missing.join(', ')}.\n`)

  describe.skipIf(missing.length > 0)(`the recipe ${recipe.file}`, () => {
    let proxy: ProxyRun
    beforeAll(async () => void (proxy = await startProxyRecipe(recipe, new URL(server.url).port)))
    afterAll(() => proxy.stop())

    const authorized = () => ['--header', `authorization: Bearer ${client.token}`]
    const post = (path: string, body: object, ...options: string[]) => {
      const json = ['--header', 'content-type: application/json', '--data', '@-']
      const command = proxy.curl(path, '--interface', clientAddress, ...authorized(), ...json, ...options)
      return runToEnd(command, { input: JSON.stringify(body) })
    }

    test('passes the address of the client, and none that the client makes up', async () => {
      const forged = ['--header', 'x-forwarded-for: 203.0.113.9', '--header', 'x-real-ip: 203.0.113.9']
      await post('/v1/projects', { name: recipe.name }, ...forged)
      const entries = await client.call<{ ip: string; action: string }[]>('GET', '/v1/audit?limit=1')
      expect(entries).toMatchObject([{ action: 'project.created', ip: clientAddress }])
    })

    test('streams each event as it happens', async () => {
      const app = await client.createApplication(`stream-${recipe.name}`)
      const child = Bun.spawn(proxy.curl('/v1/logs/stream', '--no-buffer', ...authorized()), {
        stdout: 'pipe',
      })
      try {
        const stream = readEventStream(child.stdout)
        await stream.next()
        await sendOtp(server.url, app, '+14155550132')
        const started = performance.now()
        expect(await stream.nextEntryIds(1)).toHaveLength(1)
        expect(performance.now() - started).toBeLessThan(5000)
      } finally {
        child.kill()
        await child.exited
      }
    })

    test('leaves the refusal of a large body to the server', async () => {
      const { stdout } = await post('/v1/projects', { name: 'x'.repeat(1_500_000) })
      expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'PAYLOAD_TOO_LARGE' } })
    })
  })

  test.skipIf(missing.length > 0)(
    `the recipe ${recipe.file} repeats no call that got no answer`,
    async () => {
      let posts = 0
      const backend = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: {
          data(socket, chunk) {
            if (!chunk.toString().startsWith('POST'))
              return void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')
            posts++
            socket.end()
          },
        },
      })
      const proxy = await startProxyRecipe(recipe, String(backend.port))
      try {
        const status = ['--write-out', '\n%{http_code} %header{retry-after}']
        const { stdout } = await runToEnd(proxy.curl('/v1/otp/send', ...status, '--data', '{}'), {})
        const [last = '', ...body] = stdout.split('\n').toReversed()
        expect([last.slice(0, 3), posts]).toEqual(['502', 1])
        expect(JSON.parse(body.toReversed().join(''))).toMatchObject({
          error: { code: 'UNAVAILABLE', traceId: expect.stringMatching(/^[0-9a-f-]{32,36}$/) as unknown },
        })
        expect(last).toBe('502 1')
      } finally {
        await proxy.stop()
        backend.stop(true)
      }
    },
  )
}
