import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { binaryPath, collectOutput } from '../helpers/binary.ts'
import { exchangeUnderLoad, servedFingerprint, startHttpsServer } from '../helpers/exchange.ts'
import { startHttpsLoad } from '../helpers/https-load.ts'
import { pebblePath, startPebble } from '../helpers/pebble.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'
import type { AcceptCheck } from './run.ts'

type Print = (line: string) => void

/** Exchanges certificates under load, by SIGHUP and by file, and gets them from Pebble, also when that fails. */
export const tlsCheck: AcceptCheck = {
  name: 'tls',
  title: 'certificates from files and by ACME, under load; the exchange by file takes ten minutes',
  needs: ['openssl'],
  async run(print) {
    await exchangeBySignal(print)
    const byFile = exchangeByFile(print)
    if (pebblePath === null)
      print(
        'ACME: skipped, Pebble is not installed (go install github.com/letsencrypt/pebble/v2/cmd/pebble@latest)',
      )
    else
      for (const scenario of [obtainAndRestart, renewUnderLoad, caDown, caRefusing, wrongChallenge])
        await scenario(print)
    await byFile
  },
}

const exchanges = 10

async function exchangeBySignal(print: Print) {
  const https = await startHttpsServer()
  process.once('exit', () => void https.server.stop('SIGKILL'))
  const result = await exchangeUnderLoad(https, exchanges, async () => {
    const fingerprint = https.replace()
    process.kill(https.server.pid, 'SIGHUP')
    while ((await servedFingerprint(https.port)) !== fingerprint) await Bun.sleep(20)
  })
  await https.server.stop()
  report(print, `${exchanges} exchanges by SIGHUP`, result)
}

async function exchangeByFile(print: Print) {
  const https = await startHttpsServer()
  process.once('exit', () => void https.server.stop('SIGKILL'))
  const result = await exchangeUnderLoad(https, exchanges, async () => {
    const fingerprint = https.replace()
    while ((await servedFingerprint(https.port)) !== fingerprint) await Bun.sleep(200)
  })
  await https.server.stop()
  report(print, `${exchanges} exchanges by file`, result)
}

function report(print: Print, what: string, result: Awaited<ReturnType<typeof exchangeUnderLoad>>) {
  const { kept, fresh, sent, missing, repeated } = result
  print(
    `${what}: kept ${kept.ok} calls, ${kept.lost} lost; new ${fresh.ok}, ${fresh.lost} lost; stream ${sent} events, ${missing.length} missing, ${repeated} repeated`,
  )
  require(kept.lost === 0, `kept calls were lost: ${JSON.stringify(kept.causes)}`)
  require(fresh.lost <= fresh.ok / 200, `new calls were lost: ${JSON.stringify(fresh.causes)}`)
  require(missing.length === 0 && repeated === 0, 'the stream has a gap')
}

function require(isTrue: boolean, message: string): asserts isTrue {
  if (!isTrue) throw new Error(message)
}

const domains = ['otp.test', 'www.otp.test']

/** Starts the binary with domains, and does not wait for its certificate. */
async function startWithDomains(
  folder: string,
  ca: { url: string; caFile: string },
  ports: { https: number; http: number },
) {
  const child = Bun.spawn([binaryPath, 'serve', ...domains.flatMap((name) => ['--domain', name])], {
    env: {
      HOME: folder,
      PATH: process.env['PATH'] ?? '',
      OTPD_DATA_DIR: join(folder, 'data'),
      OTPD_LOG_FORMAT: 'json',
      OTPD_LISTEN: `127.0.0.1:${ports.https}`,
      OTPD_TLS_HTTP_LISTEN: `127.0.0.1:${ports.http}`,
      OTPD_TLS_DIRECTORY_URL: ca.url,
      OTPD_TLS_DIRECTORY_CA_FILE: ca.caFile,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  // A scenario that fails ends the run, and not the server.
  process.once('exit', () => child.kill('SIGKILL'))
  const [output, errors] = [collectOutput(child.stdout), collectOutput(child.stderr)]
  const within = async (what: string, promise: Promise<unknown>) => {
    const isInTime = await Promise.race([
      promise.then(() => true),
      child.exited.then(() => false),
      Bun.sleep(180_000).then(() => false),
    ])
    require(isInTime, `no ${what}: ${output.text()}${errors.text()}`)
  }
  return {
    port: ports.https,
    waitForLog: (text: string, times = 1) => within(text, errors.waitFor(text, times)),
    ready: () => within('ready', output.waitFor('"ready"')),
    log: () => errors.text(),
    isReadySoFar: () => output.text().includes('"ready"'),
    readiness: async () => (await fetch(`http://127.0.0.1:${ports.http}/v1/health/ready`)).text(),
    hangUp: () => child.kill('SIGHUP'),
    async stop() {
      child.kill()
      const exitCode = await child.exited
      require(exitCode === 0, `the server exited with ${exitCode}`)
    },
  }
}

/** Names that the served certificate was verified for, with the root of the authority. */
async function verifiedNames(port: number, root: string): Promise<string[]> {
  const isValid = (servername: string) =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', servername, ca: root }, () => {
        resolve(socket.authorized)
        socket.destroy()
      })
      socket.on('error', () => resolve(false))
    })
  const names: string[] = []
  for (const name of [...domains, 'evil.test']) if (await isValid(name)) names.push(name)
  return names
}

type Ca = Awaited<ReturnType<typeof startPebble>>

/** Runs a scenario with a folder, ports and Pebble. */
async function withPebble(
  options: { seconds?: number; refused?: string[]; challengePort?: number },
  scenario: (context: { folder: string; ca: Ca; ports: { https: number; http: number } }) => Promise<void>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-pebble-'))
  const ports = { https: await findUnusedPort(), http: await findUnusedPort() }
  const ca = await startPebble(folder, { httpPort: options.challengePort ?? ports.http, ...options })
  try {
    await scenario({ folder, ca, ports })
  } finally {
    await ca.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const obtainAndRestart = (print: Print) =>
  withPebble({}, async ({ folder, ca, ports }) => {
    const startedAt = performance.now()
    let server = await startWithDomains(folder, ca, ports)
    await server.ready()
    const readyMs = Math.round(performance.now() - startedAt)
    const names = await verifiedNames(ports.https, ca.root)
    require(names.join() === domains.join(), `verified for ${names.join()}`)
    print(`first certificate for ${names.join(' and ')}, verified with the root, after ${readyMs} ms`)
    await server.stop()
    const orders = (log: string) => log.split('POST /order-plz').length - 1
    const before = orders(ca.log())
    server = await startWithDomains(folder, ca, ports)
    await server.ready()
    await server.stop()
    require(orders(ca.log()) === before, 'a restart ordered another certificate')
    print('a restart serves the certificate that is saved, without a new order')
    rmSync(join(folder, 'data/tls'), { recursive: true })
    server = await startWithDomains(folder, ca, ports)
    await server.ready()
    await server.stop()
    require(orders(ca.log()) > before, 'no certificate was ordered')
    print('account key and certificate lost: a new account, a new certificate')
  })

const renewUnderLoad = (print: Print) =>
  withPebble({ seconds: 60 }, async ({ folder, ca, ports }) => {
    const server = await startWithDomains(folder, ca, ports)
    await server.ready()
    rmSync(join(folder, 'data/tls/account.json'))
    const load = startHttpsLoad(ports.https)
    await server.waitForLog('certificate renewed', 2)
    const { kept, fresh } = await load.stop()
    const names = await verifiedNames(ports.https, ca.root)
    await server.stop()
    print(
      `a certificate valid for 60 s renewed twice, the account key lost meanwhile: kept ${kept.ok} calls, ${kept.lost} lost; new ${fresh.ok}, ${fresh.lost} lost`,
    )
    require(kept.lost === 0 && fresh.lost <= fresh.ok / 200, JSON.stringify({ kept, fresh }))
    require(names.length === 2, 'the certificate is not valid')
  })

const caDown = (print: Print) =>
  withPebble({}, async ({ folder, ca, ports }) => {
    await ca.stop()
    const server = await startWithDomains(folder, ca, ports)
    await server.waitForLog('cannot be reached')
    const readiness = await server.readiness()
    require(readiness.includes('"certificate"') && !server.isReadySoFar(), readiness)
    const again = await startPebble(folder, { httpPort: ports.http, port: ca.port })
    server.hangUp()
    await server.ready()
    await server.stop()
    await again.stop()
    print('CA down: readiness says certificate; once it is back, SIGHUP gets the certificate at once')
  })

const caRefusing = (print: Print) =>
  // Pebble panics if the name that it refuses has more labels than the one in the order.
  withPebble({ refused: ['otp.test'] }, async ({ folder, ca, ports }) => {
    const server = await startWithDomains(folder, ca, ports)
    await server.waitForLog('rejectedIdentifier')
    const [, words = ''] = /"error":"((?:[^"\\]|\\.)*)"/.exec(server.log()) ?? []
    require((await server.readiness()).includes('"certificate"'), 'readiness does not say certificate')
    await server.stop()
    print(`CA refusing: ${words}`)
  })

async function wrongChallenge(print: Print) {
  const stranger = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('something else') })
  await withPebble({ challengePort: stranger.port ?? 0 }, async ({ folder, ca, ports }) => {
    const server = await startWithDomains(folder, ca, ports)
    await server.waitForLog('obtaining a certificate failed')
    const [, words = ''] = /"error":"((?:[^"\\]|\\.)*)"/.exec(server.log()) ?? []
    require(!server.isReadySoFar(), 'HTTPS is served without a certificate')
    await server.stop()
    print(`wrong challenge: ${words}`)
  })
  await stranger.stop(true)
}
