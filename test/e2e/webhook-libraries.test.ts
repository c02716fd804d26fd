import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import {
  logIn,
  makeServerHome,
  sendOtp,
  type TestApp,
  type WebhookClient,
} from '../helpers/webhook-client.ts'
import { startReceiver } from '../helpers/webhook-receiver.ts'

// Webhook receivers as developers write them, each with a third-party library, for events of the compiled binary.

const options = makeServerHome()
let server: RunningServer
let client: WebhookClient
let app: TestApp
const cleanups: Array<() => unknown> = []

beforeAll(async () => {
  server = await startServer(options)
  client = await logIn(server.url)
  app = await client.createApplication()
}, 300_000)
afterAll(async () => {
  await server.stop()
  for (const cleanUp of cleanups) await cleanUp()
  rmSync(options.home, { recursive: true, force: true })
})

type Delivery = { id: string; status: string; lastStatusCode: number | null; attempts: number }

/** Sends an event to the URL. @returns its delivery, after the first attempt */
async function deliverTo(url: string): Promise<Delivery> {
  const { id } = await client.createEndpoint(app, url, ['otp.sent'])
  expect(await sendOtp(server.url, app, '+14155552671')).toBeDefined()
  for (;;) {
    const [delivery] = await client.call<Delivery[]>('GET', `/v1/webhooks/${id}/deliveries`)
    if (delivery && delivery.attempts > 0) {
      await client.call('DELETE', `/v1/webhooks/${id}`)
      return delivery
    }
    await Bun.sleep(5)
  }
}

describe.each([
  ['standardwebhooks for JavaScript', (secret: string) => new StandardWebhook(secret)],
  ['svix for JavaScript', (secret: string) => new SvixWebhook(secret)],
])('%s', (_name, create) => {
  test('verifies an event with the unchanged secret, and refuses a forged one', async () => {
    const receiver = await startReceiver()
    cleanups.push(receiver.stop)
    expect(await deliverTo(receiver.url)).toMatchObject({ status: 'delivered', lastStatusCode: 200 })
    const { body = '', headers = {} } = receiver.received[0] ?? {}
    const library = create(app.webhookSecret)
    expect(library.verify(body, headers)).toMatchObject({
      id: headers['webhook-id'],
      type: 'otp.sent',
      data: { phone: '+14155552671', status: 'pending' },
    })
    expect(() => library.verify(`${body} `, headers)).toThrow()
    expect(() => library.verify(body, { ...headers, 'webhook-id': 'evt_other' })).toThrow()
    expect(() => create(`whsec_${'0'.repeat(48)}`).verify(body, headers)).toThrow()
  })
})

/** Starts a receiver in another language, which prints its port first, and sends it a genuine and a forged event. */
async function expectVerified(command: string[], folder: string, secret: string) {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: { ...process.env, WEBHOOK_SECRET: secret },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  cleanups.push(() => child.kill())
  const { value } = await child.stdout.getReader().read()
  const port = Number(new TextDecoder().decode(value))
  if (!port) throw new Error(await child.stderr.text())
  expect(await deliverTo(`http://127.0.0.1:${port}/`)).toMatchObject({ lastStatusCode: 204 })
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
    'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`,
  }
  const forged = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: '{}' })
  expect(forged.status).toBe(401)
}

const pythonReceiver = `
import http.server, os
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            Webhook(os.environ["WEBHOOK_SECRET"]).verify(body, dict(self.headers))
            self.send_response(204)
        except WebhookVerificationError:
            self.send_response(401)
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_address[1], flush=True)
server.serve_forever()
`

const python = process.env['OTPD_TEST_PYTHON'] ?? 'python3'
const hasPython =
  Bun.which(python) !== null && Bun.spawnSync([python, '-c', 'import standardwebhooks']).success
if (!hasPython)
  process.stderr.write(
    'Skipped: webhooks received by Python. Run pip install standardwebhooks, or set OTPD_TEST_PYTHON.\n',
  )

describe.skipIf(!hasPython)('standardwebhooks for Python', () => {
  test('verifies an event with the unchanged secret, and refuses a forged one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'otpd-python-'))
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'receiver.py'), pythonReceiver)
    await expectVerified([python, 'receiver.py'], folder, app.webhookSecret)
  }, 300_000)
})

const goModule = `module receiver

go 1.21

require github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
`

const goReceiver = `package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	library, err := webhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if library.Verify(body, r.Header) != nil {
			w.WriteHeader(401)
			return
		}
		w.WriteHeader(204)
	})))
}
`

/** Builds the Go receiver before the tests. The module comes from Go's proxy or cache. */
function buildGoReceiver(): string | undefined {
  if (Bun.which('go') === null) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'otpd-go-'))
  writeFileSync(join(folder, 'go.mod'), goModule)
  writeFileSync(join(folder, 'main.go'), goReceiver)
  const runGo = (...args: string[]) =>
    Bun.spawnSync(['go', ...args], {
      cwd: folder,
      timeout: 60_000,
      env: { ...process.env, GOFLAGS: '-mod=mod' },
    }).success
  if (runGo('build', '-o', 'receiver', '.')) return folder
  rmSync(folder, { recursive: true, force: true })
  return undefined
}

const goFolder = buildGoReceiver()
if (goFolder === undefined)
  process.stderr.write(
    'Skipped: webhooks received by Go. Install Go, and let it reach its module proxy once.\n',
  )
else cleanups.push(() => rmSync(goFolder, { recursive: true, force: true }))

describe.skipIf(goFolder === undefined)('standardwebhooks for Go', () => {
  test('verifies an event with the unchanged secret, and refuses a forged one', async () => {
    await expectVerified(['./receiver'], goFolder ?? '', app.webhookSecret)
  }, 300_000)
})
