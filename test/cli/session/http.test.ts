import { expect, test } from 'bun:test'
import { createHttp } from '../../../cli/session/http.ts'

test('a response that does not end is refused before it takes the memory of the machine', async () => {
  const piece = new Uint8Array(1024 * 1024)
  let sent = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            if (sent++ < 500) controller.enqueue(piece)
            else controller.close()
          },
        }),
      ),
  })
  const url = `http://127.0.0.1:${server.port}`
  const send = createHttp({ url, origin: url, source: '--server' }, 60_000)
  try {
    await expect(send({ method: 'GET', path: '/v1/projects' })).rejects.toMatchObject({
      code: 'RESPONSE_TOO_LARGE',
      exitCode: 3,
    })
    expect(sent).toBeLessThan(400)
  } finally {
    await server.stop(true)
  }
})

test.each([
  ['idempotency-key', 'order-ü🦊', []],
  ['idempotency-key', 'a\u001b[31m', []],
  ['authorization', 'Bearer otpd_pat_1\notpd_pat_2', ['Check OTPD_TOKEN, or log in again: otpd login']],
  ['x-api-key', 'one\r\ntwo', [expect.stringContaining('OTPD_API_KEY')]],
])(
  'a header %s that HTTP cannot send is a usage error, not a server that is away',
  async (name, value, hints) => {
    const url = 'http://127.0.0.1:1'
    const send = createHttp({ url, origin: url, source: '--server' }, 60_000)
    const call = (text: string) => send({ method: 'GET', path: '/v1/projects', headers: { [name]: text } })
    await expect(call(value)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', exitCode: 2, hints })
    await expect(call('visible\r\n')).rejects.toMatchObject({ code: 'SERVER_UNREACHABLE' })
  },
)
