import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'
import { withServer, type BenchCase, type BenchContext } from './bench-case.ts'
import { encodeRequest } from './load.ts'
import type { Server } from './machine.ts'
import { runNewConnections } from './new-connections.ts'
import { startWithAccount } from './otpd.ts'
import { measureBy, measureRepeated, type Sample } from './service.ts'

const [path, connections] = ['/v1/health', 32]

/** Starts otpd with HTTPS. */
function startHttps({ binary, folder, env }: BenchContext) {
  const { cert, key } = makeCertificate('localhost')
  const files = { OTPD_TLS_CERT_FILE: join(folder, 'cert.pem'), OTPD_TLS_KEY_FILE: join(folder, 'key.pem') }
  writeFileSync(files.OTPD_TLS_CERT_FILE, cert)
  writeFileSync(files.OTPD_TLS_KEY_FILE, key, { mode: 0o600 })
  return startWithAccount({ command: [binary], folder, env: { ...env, ...files } })
}

const httpsCase = (
  scheme: 'http' | 'https',
  start: (context: BenchContext) => Promise<Server>,
): BenchCase => ({
  rows: {
    [`${scheme}-kept`]: `otpd: probe, ${scheme}, kept connections`,
    [`${scheme}-new`]: `otpd: probe, ${scheme}, a connection each`,
  },
  prepare: () => (hasOpenssl ? undefined : 'openssl is not installed'),
  async run(context, isWanted) {
    const isTls = scheme === 'https'
    const { loadSettings } = context
    return withServer(await start(context), async (server) => {
      const samples: Record<string, Sample> = {}
      if (isWanted(`${scheme}-kept`)) {
        const request = encodeRequest(path, {})
        samples[`${scheme}-kept`] = await measureRepeated(server, [request], { ...loadSettings, isTls })
      }
      if (isWanted(`${scheme}-new`)) {
        const request = encodeRequest(path, { connection: 'close' })
        const load = (seconds: number) =>
          measureBy(server, () => runNewConnections(server.port, request, { connections, seconds, isTls }))
        await load(loadSettings.warmUpSeconds)
        samples[`${scheme}-new`] = await load(loadSettings.seconds)
      }
      return samples
    })
  },
})

/** Cases of the cost of TLS: the same probe over HTTP and HTTPS, on kept connections and on a new one each. */
export const httpsCases: readonly BenchCase[] = [
  httpsCase('http', ({ binary, folder, env }) => startWithAccount({ command: [binary], folder, env })),
  httpsCase('https', startHttps),
]
