import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { collectOutput } from './binary.ts'
import { findUnusedPort } from './unused-port.ts'
import { makeCertificate } from './webhook-receiver.ts'

const goBin = join(process.env['GOPATH'] ?? join(homedir(), 'go'), 'bin')

/** Path of Pebble, the certificate authority for tests of ACME; null if it is not installed. */
export const pebblePath = Bun.which('pebble', { PATH: `${process.env['PATH'] ?? ''}:${goBin}` })

/**
 * Starts Pebble, which refuses every fifth nonce and finds every name at 127.0.0.1.
 *
 * @param options.httpPort port of HTTP-01 challenges
 * @param options.seconds lifetime of its certificates
 * @param options.refused names that it refuses
 */
export async function startPebble(
  folder: string,
  options: { httpPort: number; seconds?: number; refused?: string[]; port?: number },
) {
  if (pebblePath === null) throw new Error('Pebble is not installed')
  const dns = startDns()
  const [port, managementPort] = [options.port ?? (await findUnusedPort()), await findUnusedPort()]
  mkdirSync(folder, { recursive: true })
  const caFile = join(folder, 'ca.pem')
  const keyFile = join(folder, 'ca-key.pem')
  if (!existsSync(caFile)) {
    const pair = makeCertificate('localhost')
    writeFileSync(caFile, pair.cert)
    writeFileSync(keyFile, pair.key)
  }
  const cert = readFileSync(caFile, 'utf8')
  const configFile = join(folder, 'pebble.json')
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: caFile,
    privateKey: keyFile,
    httpPort: options.httpPort,
    tlsPort: 1,
    externalAccountBindingRequired: false,
    domainBlocklist: options.refused ?? [],
    retryAfter: { authz: 1, order: 1 },
    keyAlgorithm: 'ecdsa',
    profiles: { default: { description: '', validityPeriod: options.seconds ?? 7_776_000 } },
  }
  writeFileSync(configFile, JSON.stringify({ pebble }))
  const child = Bun.spawn([pebblePath, '-config', configFile, '-dnsserver', `127.0.0.1:${dns.port}`], {
    env: { PEBBLE_WFE_NONCEREJECT: '20', PEBBLE_VA_NOSLEEP: '1' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const output = [collectOutput(child.stdout), collectOutput(child.stderr)]
  const url = `https://localhost:${port}/dir`
  for (let tries = 0; ; tries++) {
    const isUp = await fetch(url, { tls: { ca: cert } }).then(
      () => true,
      () => false,
    )
    if (isUp) break
    if (tries === 100 || child.exitCode !== null)
      throw new Error(`Pebble does not start: ${output.map(({ text }) => text().slice(-500)).join('')}`)
    await Bun.sleep(100)
  }
  const root = await fetch(`https://localhost:${managementPort}/roots/0`, { tls: { ca: cert } })
  return {
    url,
    port,
    caFile,
    /** Root of the certificates that it issues, in PEM. */
    root: await root.text(),
    log: () => output.map(({ text }) => text()).join(''),
    async stop() {
      child.kill()
      await child.exited
      dns.stop()
    },
  }
}

/** Starts a DNS server over TCP that answers every question for an IPv4 address with 127.0.0.1 (RFC 1035). */
function startDns() {
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, message) {
        const query = message.subarray(2)
        // The question follows the head of twelve bytes: labels up to an empty one, type and class.
        const end = query.indexOf(0, 12) + 5
        const isIpv4 = query[end - 3] === 1
        const head = [query[0] ?? 0, query[1] ?? 0, 0x84, 0, 0, 1, 0, isIpv4 ? 1 : 0, 0, 0, 0, 0]
        const record = isIpv4 ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1] : []
        const answer = Buffer.concat([Buffer.from(head), query.subarray(12, end), Buffer.from(record)])
        socket.write(Buffer.concat([Buffer.from([0, answer.length]), answer]))
      },
    },
  })
  return { port: listener.port, stop: () => listener.stop(true) }
}
