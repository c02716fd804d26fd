import { describe, expect, test } from 'bun:test'
import { certificateChecks } from '../../src/shared/certificate-checks.ts'
import { inspectPair } from '../../src/tls/pair.ts'
import { findOrigin, load, loadEnv, requireConfig, requireProblem } from '../helpers/config.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'

const dayMs = 86_400_000
const [cert, key] = ['/tls/cert.pem', '/tls/key.pem']
const env = { HOME: '/home/ada', OTPD_TLS_CERT_FILE: cert, OTPD_TLS_KEY_FILE: key }

describe('domains', () => {
  test('set address, public URL and plain HTTP, unless these are set', () => {
    const loaded = load({ flags: { domain: ['OTP.example.com', 'www.otp.example.com', 'otp.example.com'] } })
    expect(requireConfig(loaded)).toMatchObject({
      listen: { host: '0.0.0.0', port: 443 },
      publicUrl: 'https://otp.example.com',
      tls: {
        certificate: {
          kind: 'acme',
          domains: ['otp.example.com', 'www.otp.example.com'],
          email: null,
          directoryUrl: 'https://acme-v02.api.letsencrypt.org/directory',
          directoryCa: null,
        },
        httpListen: { host: '0.0.0.0', port: 80 },
        hstsSeconds: 0,
      },
    })
    expect(findOrigin(loaded, 'server.listen')).toBe('--domain')
    const set = { OTPD_TLS_DOMAINS: 'otp.example.com', OTPD_LISTEN: '127.0.0.1:4443' }
    expect(
      requireConfig(
        loadEnv({ ...set, OTPD_PUBLIC_URL: 'https://a.example', OTPD_TLS_HTTP_LISTEN: '127.0.0.1:8000' }),
      ),
    ).toMatchObject({
      listen: { host: '127.0.0.1', port: 4443 },
      publicUrl: 'https://a.example',
      tls: { httpListen: { host: '127.0.0.1', port: 8000 } },
    })
  })

  test.each([
    '192.0.2.1',
    '2001:db8::1',
    '*.example.com',
    'localhost',
    'a.localhost',
    'otp.example.com:443',
    'otp',
    'https://otp.example.com',
  ])('cannot be %s', (domain) => {
    expect(requireProblem(load({ flags: { domain: [domain] } })).text).toContain(
      'Certificates are for names: otp.example.com.',
    )
  })

  test('need a database of this node alone', () => {
    const shared = { OTPD_DATABASE_URL: 'postgres://127.0.0.1/otpd', OTPD_MASTER_KEY: 'ab'.repeat(31) + 'cd' }
    expect(requireProblem(loadEnv({ ...shared, OTPD_TLS_DOMAINS: 'otp.example.com' })).text).toContain(
      'End HTTPS at the balancer',
    )
  })

  test('exclude certificate files', () => {
    const problem = requireProblem(load({ flags: { domain: ['otp.example.com'] }, env }))
    expect(problem.text).toContain('Choose one: tls.domains or tls.certFile.')
  })

  test.each([
    { OTPD_TLS_EMAIL: 'ops@example.com' },
    { OTPD_TLS_DIRECTORY_URL: 'https://ca.example/directory' },
    { OTPD_TLS_HTTP_LISTEN: '0.0.0.0:80' },
    { OTPD_TLS_HSTS_SECONDS: '300' },
  ])('or files are needed by %p', (alone) => {
    expect(requireProblem(loadEnv(alone)).text).toMatch(/needs (tls.domains|a certificate)\./)
  })
})

describe.skipIf(!hasOpenssl)('certificate files', () => {
  const pair = hasOpenssl ? makeCertificate('otp.example.com') : { cert: '', key: '' }
  const other = hasOpenssl ? makeCertificate('otp.example.com') : { cert: '', key: '' }
  const loadPair = (
    {
      cert: certText = pair.cert,
      key: keyText = pair.key,
    }: { cert?: string | Uint8Array; key?: string | Uint8Array },
    rest: Parameters<typeof load>[0] = {},
  ) => load({ env, files: { [cert]: certText, [key]: keyText }, ...rest })
  const openssl = (args: string, input: string) => {
    const { stdout } = Bun.spawnSync(['openssl', ...args.split(' ')], { stdin: Buffer.from(input) })
    return new Uint8Array(stdout)
  }

  test('are served, without plain HTTP, and their content is in no setting', () => {
    const loaded = loadPair({})
    expect(requireConfig(loaded)).toMatchObject({
      listen: { host: '127.0.0.1', port: 8080 },
      tls: { certificate: { kind: 'files', certFile: cert, keyFile: key }, httpListen: null },
    })
    expect(JSON.stringify(loaded)).not.toContain('PRIVATE KEY')
  })

  test.each([
    ['tls.keyFile is missing: a certificate needs its key.', { OTPD_TLS_CERT_FILE: cert }],
    ['tls.certFile is missing: a key needs its certificate.', { OTPD_TLS_KEY_FILE: key }],
  ])('%s', (text, half) => {
    expect(requireProblem(loadEnv(half)).text).toContain(text)
  })

  test.each<[text: string, files: { cert?: string | Uint8Array; key?: string | Uint8Array }]>([
    [`The key in ${key} does not belong to the certificate in ${cert}.`, { key: other.key }],
    [`${cert} has no certificate.`, { cert: pair.key }],
    [`${key} has no private key.`, { key: pair.cert }],
    [`The certificate in ${cert} is in DER.`, { cert: openssl('x509 -outform DER', pair.cert) }],
    [`openssl x509 -inform DER -in ${cert}`, { cert: openssl('x509 -outform DER', pair.cert) }],
    [`openssl pkey -inform DER -in ${key}`, { key: openssl('pkey -outform DER', pair.key) }],
    [`The key in ${key} is encrypted.`, { key: openssl('pkey -aes256 -passout pass:secret', pair.key) }],
    [`The certificate in ${cert} cannot be read.`, { cert: pair.cert.replace(/\n.{20}/, '\n') }],
    [`The key in ${key} cannot be read.`, { key: pair.key.replace(/\n.{20}/, '\n') }],
  ])('%s', (text, files) => {
    const problem = requireProblem(loadPair(files))
    expect(problem.text).toContain(text)
    expect(problem.source).toMatch(/^OTPD_TLS_(CERT|KEY)_FILE$/)
  })

  test('must not be readable by others, as far as the key goes', () => {
    expect(requireProblem(loadPair({}, { modes: { [key]: 0o644 } })).text).toContain(`chmod o= ${key}`)
    expect(requireConfig(loadPair({}, { modes: { [cert]: 0o644, [key]: 0o640 } })).tls).not.toBeNull()
  })

  test('that ended are refused, with a warning only in the first seven days', () => {
    const at = (days: number) => loadPair({}, { now: () => Date.now() + days * dayMs })
    expect(at(1).warnings).toEqual([])
    expect(at(3)).toMatchObject({
      problems: [],
      warnings: [{ message: expect.stringMatching(/ ended on 20/) }],
    })
    expect(requireProblem(at(10)).text).toMatch(/The certificate in \/tls\/cert.pem ended on 20\d\d-/)
    expect(requireProblem(at(-1)).text).toContain('is valid from 20')
  })

  test('that are missing or ended keep no other command from working', () => {
    const options = { use: 'host command' } as const
    expect(load({ env }, options).problems).toEqual([])
    expect(load({ env }).problems).toHaveLength(2)
  })

  test('are checked by the doctor: days left, and the names that they cover', () => {
    const nowMs = Date.now()
    const config = requireConfig(
      loadPair({}, { env: { ...env, OTPD_PUBLIC_URL: 'https://otp.example.com' } }),
    )
    // An alert is read long after it.
    const utc = (afterMs: number) =>
      `${new Date(nowMs + afterMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`
    const failure = { error: 'dns: no record', nextTry: nowMs + 120_000 }
    const check = (
      leftDays: number,
      lifetimeDays: number,
      coversPublicUrl = true,
      failed: typeof failure | null = null,
    ) => {
      const notAfter = nowMs + leftDays * dayMs
      const facts = { names: ['otp.example.com'], notBefore: notAfter - lifetimeDays * dayMs, notAfter }
      const certificate = { state: 'readable', facts, coversPublicUrl, failure: failed } as const
      return certificateChecks(config, certificate, nowMs)[0]
    }
    expect(check(11, 90)).toMatchObject({ status: 'ok', message: 'otp.example.com, valid for 11 days' })
    expect(check(9, 90)).toMatchObject({
      status: 'fault',
      message: `otp.example.com ends in 9 days (${utc(9 * dayMs)})`,
    })
    expect(check(3, 6)?.status).toBe('ok')
    expect(check(0.5, 6)).toMatchObject({
      status: 'fault',
      message: `otp.example.com ends in 12 h (${utc(dayMs / 2)})`,
    })
    expect(check(-1, 90)?.message).toStartWith('otp.example.com ended 20')
    expect(check(80, 90, false)).toMatchObject({
      status: 'fault',
      message: expect.stringContaining('clients use https://otp.example.com'),
    })
    const again = `The server tries again in 2 min (${utc(120_000)}); at once with: systemctl reload otpd`
    expect(check(20, 90, true, failure)).toMatchObject({
      status: 'warning',
      message: 'otp.example.com, valid for 20 days, could not be renewed: dns: no record',
      remedy: again,
    })
    expect(check(9, 90, true, failure)).toMatchObject({ status: 'fault', remedy: again })
    expect(certificateChecks(config, { state: 'none', failure: null }, nowMs)).toMatchObject([
      { status: 'warning', message: 'none yet: HTTPS is not served' },
    ])
    expect(certificateChecks(config, { state: 'none', failure }, nowMs)).toMatchObject([
      { status: 'warning', message: 'none yet, so HTTPS is not served: dns: no record', remedy: again },
    ])
    expect(certificateChecks(config, { state: 'none', failure }, nowMs + 120_000)).toMatchObject([
      { remedy: 'Start the server: it tries again at once.' },
    ])
    expect(certificateChecks(config, { state: 'unreadable', path: cert }, nowMs)).toMatchObject([
      { status: 'fault' },
    ])
    expect(certificateChecks({ ...config, tls: null }, null, nowMs)).toEqual([])
  })

  test('may hold the chain after the certificate of the server, not before it', () => {
    const file = (path: string, text: string) => ({ path, bytes: Buffer.from(text) })
    const inspect = (text: string) =>
      inspectPair(file(cert, text), file(key, pair.key), { nowMs: Date.now() })
    expect(inspect(pair.cert + other.cert)).toMatchObject({ facts: { names: ['otp.example.com'] } })
    expect(inspect(other.cert + pair.cert)).toMatchObject({ path: key })
  })
})
