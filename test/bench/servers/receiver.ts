/** Webhook receiver. */
export const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    await request.text()
    return new Response(null, { status: 204 })
  },
})
process.stdout.write(`${server.port}\n`)
