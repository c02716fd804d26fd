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
