/** Webhook receiver. `GET /count` returns the number of webhooks so far. */
let count = 0
export const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    if (request.method === 'GET') return Response.json(count)
    await request.text()
    count++
    return new Response(null, { status: 204 })
  },
})
process.stdout.write(`${server.port}\n`)
