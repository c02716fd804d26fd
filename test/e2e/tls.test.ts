import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { certifiedUrl } from '../../src/host/certificate.ts'
import { load, requireConfig } from '../helpers/config.ts'
import { runBinary, runToEnd, startServer } from '../helpers/binary.ts'
import { exchangeUnderLoad, servedFingerprint, startHttpsServer } from '../helpers/exchange.ts'
import { codeBlocks, readDocument } from '../helpers/guide-blocks.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'
import { hasOpenssl } from '../helpers/webhook-receiver.ts'

describe.skipIf(!hasOpenssl)('a server with a certificate of its own', () => {
  let https: Awaited<ReturnType<typeof startHttpsServer>>
  let httpPort = 0
  beforeAll(async () => {
    httpPort = await findUnusedPort()
    https = await startHttpsServer({
      OTPD_TLS_HTTP_LISTEN: `127.0.0.1:${httpPort}`,
      OTPD_TLS_HSTS_SECONDS: '300',
    })
  })
  afterAll(async () => void (await https.server.stop()))

  test('says so in its headers', async () => {
    const response = await fetch(`${https.url}/v1/health`, { tls: { rejectUnauthorized: false } })
    expect([response.status, response.headers.get('strict-transport-security')]).toEqual([200, 'max-age=300'])
  })

  test.each([
    ['-tls1', false],
    ['-tls1_1', false],
    ['-tls1_2', true],
    ['-tls1_3', true],
  ])('with %s: taken %p', async (version, isTaken) => {
    const ciphers = version === '-tls1_3' ? [] : ['-cipher', 'ALL:@SECLEVEL=0']
    const command = ['openssl', 's_client', '-connect', `127.0.0.1:${https.port}`, version, ...ciphers]
    const { stdout } = await runToEnd(command, { input: 'Q\n' })
    expect(/Cipher is (?!\(NONE\))/.test(stdout)).toBe(isTaken)
  })

  const plain = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${httpPort}${path}`, {
      ...init,
      headers: { host: 'localhost', ...init.headers },
      redirect: 'manual',
    })

  test.each(['GET', 'HEAD'])('redirects %s to the same path', async (method) => {
    const response = await plain('/v1/health/ready?a=b', { method })
    expect([response.status, response.headers.get('location')]).toEqual([
      308,
      `${https.url}/v1/health/ready?a=b`,
    ])
  })

  test.each(['POST', 'PATCH', 'DELETE'])('refuses %s over plain HTTP', async (method) => {
    const body = method === 'POST' ? { body: '{"phone":"+14155550132"}' } : {}
    const response = await plain('/v1/otp/send', { method, ...body })
    expect([response.status, response.headers.get('location')]).toEqual([403, null])
    expect(await response.json()).toMatchObject({ error: { code: 'FORBIDDEN', message: 'Use https.' } })
  })

  test('redirects no host that the certificate does not cover', async () => {
    const response = await plain('/', { headers: { host: 'evil.example' } })
    expect([response.status, response.headers.get('location')]).toEqual([404, null])
  })

  test('names itself to people as its certificate does', () => {
    const { certFile, keyFile, port } = https
    const files = { [certFile]: readFileSync(certFile), [keyFile]: readFileSync(keyFile) }
    const config = requireConfig(load({ flags: { tlsCert: certFile, tlsKey: keyFile }, files }))
    for (const host of ['127.0.0.1', '[::1]', 'localhost'])
      expect(certifiedUrl(`https://${host}:${port}`, config)).toBe(https.url)
  })

  test('is reached by the command line once that trusts it', async () => {
    const { server, url, certFile } = https
    const args = ['login', '--server', url, '--email', 'ada@example.com', '--password-stdin']
    const run = (env: Record<string, string>) =>
      runBinary(server.home, args, { env, input: 'correct horse battery' })
    const refused = await run({})
    expect([refused.exitCode, refused.stderr]).toEqual([3, expect.stringContaining('NODE_EXTRA_CA_CERTS')])
    const taken = await run({ NODE_EXTRA_CA_CERTS: certFile })
    expect([taken.exitCode, taken.stderr]).toEqual([0, expect.any(String)])
  })

  test('exchanges it under load on SIGHUP: no call on a kept connection is lost, and no event of a stream', async () => {
    const result = await exchangeUnderLoad(https, 2, async () => {
      const fingerprint = https.replace()
      process.kill(https.server.pid, 'SIGHUP')
      while ((await servedFingerprint(https.port)) !== fingerprint) await Bun.sleep(20)
    })
    expect(result.kept).toMatchObject({ lost: 0 })
    expect(result.kept.ok).toBeGreaterThan(50)
    expect(result.fresh.lost).toBeLessThanOrEqual(2 + result.fresh.ok / 200)
    expect(result).toMatchObject({ sent: 4, missing: [], repeated: 0 })
  })

  test('keeps the old certificate if the new one is invalid', async () => {
    const before = await servedFingerprint(https.port)
    writeFileSync(https.certFile, 'no certificate')
    process.kill(https.server.pid, 'SIGHUP')
    await https.server.waitForLog('has no certificate')
    expect(await servedFingerprint(https.port)).toBe(before)
    https.replace()
  })
})

test('the guide shows the drop-in for the ports 80 and 443', () => {
  const [block] = codeBlocks(readDocument('src/docs/tls.md'), 'ini')
  const withoutComments = readDocument('.packaging/linux/port-443.conf').replaceAll(/^#.*\n/gm, '')
  expect(withoutComments).toBe(block ?? '')
})

test('a server that others can reach warns without HTTPS and without a trusted proxy', async () => {
  for (const [proxies, isWarned] of [
    ['', true],
    ['10.0.0.0/8', false],
  ] as const) {
    const server = await startServer({ env: { OTPD_LISTEN: '0.0.0.0:0', OTPD_TRUSTED_PROXIES: proxies } })
    await server.stop()
    expect(server.log().includes('cross the network unencrypted')).toBe(isWarned)
  }
})

describe.skipIf(!hasOpenssl)('a server does not start', () => {
  test('with a key that others can read, also behind a symbolic link', async () => {
    const { server, certFile, keyFile } = await startHttpsServer()
    await server.stop('SIGKILL')
    chmodSync(keyFile, 0o644)
    const link = join(server.home, 'link.pem')
    symlinkSync(keyFile, link)
    const result = await runBinary(server.home, ['serve', '--tls-cert', certFile, '--tls-key', link])
    expect(result.exitCode).toBe(9)
    expect(result.stderr).toContain(`chmod o= ${link}`)
  })

  test('on a port that another program has', async () => {
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const { server, certFile, keyFile } = await startHttpsServer()
    await server.stop('SIGKILL')
    const args = ['serve', '--tls-cert', certFile, '--tls-key', keyFile]
    for (const env of [
      { OTPD_LISTEN: `127.0.0.1:${other.port}` },
      { OTPD_LISTEN: '127.0.0.1:0', OTPD_TLS_HTTP_LISTEN: `127.0.0.1:${other.port}` },
    ]) {
      const result = await runBinary(server.home, args, { env })
      expect([result.exitCode, result.stderr]).toEqual([9, expect.stringContaining('already in use')])
    }
    await other.stop(true)
  })
})
