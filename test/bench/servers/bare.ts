/** Baseline: Bun's own server with JSON in and out, and nothing else. Prints its port. */
export const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const body: unknown = await request.json()
    return Response.json({ data: { ...Object(body), status: 'pending' } })
  },
})
process.stdout.write(`${server.port}\n`)
