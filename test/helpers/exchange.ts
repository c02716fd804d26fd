import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { startServer } from './binary.ts'
import { readEventStream } from './event-stream.ts'
import { startHttpsLoad } from './https-load.ts'
import { logIn, login, makeServerHome, sendOtp } from './webhook-client.ts'
import { makeCertificate } from './webhook-receiver.ts'

/** Starts the binary with a certificate of its own for `localhost`, and an account without limits. */
export async function startHttpsServer(env: Record<string, string> = {}) {
  const options = makeServerHome()
  const [certFile, keyFile] = [join(options.home, 'cert.pem'), join(options.home, 'key.pem')]
  const write = ({ cert, key }: { cert: string; key: string }) => {
    for (const [path, text] of [
      [certFile, cert],
      [keyFile, key],
    ] as const) {
      writeFileSync(`${path}.new`, text, { mode: 0o600 })
      renameSync(`${path}.new`, path)
    }
  }
  write(makeCertificate('localhost'))
  const args = [...options.args, '--tls-cert', certFile, '--tls-key', keyFile]
  const server = await startServer({ ...options, args, env: { ...options.env, ...env } })
  const port = Number(new URL(server.url).port)
  return {
    server,
    port,
    url: `https://localhost:${port}`,
    certFile,
    keyFile,
    /** Replaces both files by a new certificate. @returns its fingerprint */
    replace() {
      const pair = makeCertificate('localhost')
      write(pair)
      return new X509Certificate(pair.cert).fingerprint256
    },
  }
}

/** Returns the fingerprint of the certificate that new connections get; an empty text for one that was lost. */
export function servedFingerprint(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(
      { port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false },
      () => {
        const { fingerprint256 } = socket.getPeerCertificate()
        socket.destroy()
        resolve(fingerprint256)
      },
    )
    socket.on('error', () => resolve(''))
  })
}

const untrusted = { tls: { rejectUnauthorized: false } }

/**
 * Exchanges certificates under load: calls on kept and on new connections, and a log stream that must carry the event of
 * each code sent meanwhile.
 *
 * @param exchange makes the server serve the next certificate
 */
export async function exchangeUnderLoad(
  { url, port }: Pick<Awaited<ReturnType<typeof startHttpsServer>>, 'url' | 'port'>,
  exchanges: number,
  exchange: (index: number) => Promise<void>,
) {
  const client = await logIn(url, login, untrusted)
  const app = await client.createApplication()
  const headers = { authorization: `Bearer ${client.token}` }
  const response = await fetch(`${url}/v1/logs/stream`, { ...untrusted, headers })
  const stream = readEventStream(response.body)
  const received: string[] = []
  const reading = (async () => {
    for (let message = await stream.next(); message; message = await stream.next()) {
      const event: { type?: string; requestId?: string } = message.data ? JSON.parse(message.data) : {}
      // Those of a long run expire meanwhile.
      if (event.type === 'otp.sent' && event.requestId !== undefined) received.push(event.requestId)
    }
  })().catch(() => {})
  const load = startHttpsLoad(port)
  const sent: string[] = []
  const send = async () => {
    const fresh = { ...untrusted, keepalive: false }
    const requestId = await sendOtp(url, app, `+1415555${1000 + sent.length}`, fresh)
    if (requestId !== undefined) sent.push(requestId)
  }
  for (let index = 0; index < exchanges; index++) {
    await send()
    await exchange(index)
    await send()
    // The old certificate is served for two more seconds.
    await Bun.sleep(2_500)
  }
  const tallies = await load.stop()
  const deadline = performance.now() + 10_000
  while (sent.some((id) => !received.includes(id)) && performance.now() < deadline) await Bun.sleep(20)
  const missing = sent.filter((id) => !received.includes(id))
  const repeated = received.length - new Set(received).size
  await stream.cancel().catch(() => {})
  await reading
  return { ...tallies, sent: sent.length, missing, repeated }
}
