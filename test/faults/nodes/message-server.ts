export type MessageServer = ReturnType<typeof startMessageServer>

/** Message as a node handed it over. `at` is milliseconds since the epoch. */
export type HandedMessage = { node: number; requestId: string; at: number }

/** Starts the provider of all nodes: it accepts every message, and knows from which node it came. */
export function startMessageServer() {
  const handed: HandedMessage[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const node = Number(new URL(request.url).pathname.slice(1))
      const { data }: { data: { requestId: string } } = JSON.parse(await request.text())
      handed.push({ node, requestId: data.requestId, at: Date.now() })
      return Response.json({ messageId: crypto.randomUUID() })
    },
  })
  return {
    /** Messages in the order of their arrival. */
    handed,
    env: { OTPD_SECRET_MESSAGES: `whsec_${Buffer.alloc(32, 9).toString('base64')}` },
    /** Configures it as the provider of node `i`. */
    toml: (i: number) =>
      `[[providers]]\nname = "messages"\nkind = "http"\nurl = "${server.url.href}${i}"\nsecretEnv = "OTPD_SECRET_MESSAGES"\n`,
    stop: () => void server.stop(true),
  }
}
