import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspectCertificate } from '../../src/host/certificate.ts'
import { certificateChecks } from '../../src/shared/certificate-checks.ts'
import { dayMs } from '../../src/shared/durations.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'

describe.skipIf(!hasOpenssl)('the files of a certificate', () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-certificate-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const config = {
    tls: { certificate: { kind: 'files' as const, certFile, keyFile }, httpListen: null, hstsSeconds: 0 },
    dataDir: null,
    publicUrl: 'https://otp.example.com',
  }
  const check = (nowMs = Date.now()) => certificateChecks(config, inspectCertificate(config), nowMs)
  const pair = hasOpenssl ? makeCertificate('otp.example.com', 90) : { cert: '', key: '' }
  const other = hasOpenssl ? makeCertificate('otp.example.com', 90) : { cert: '', key: '' }
  const write = (cert: string, key: string) => {
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
  }

  test('are well if they can be served', () => {
    write(pair.cert, pair.key)
    expect(check()).toMatchObject([{ status: 'ok' }])
  })

  test('are a fault if they cannot: the server keeps the old one until that ends', () => {
    write(other.cert, pair.key)
    expect(check()).toEqual([
      {
        status: 'fault',
        name: 'certificate',
        message: `The key in ${keyFile} does not belong to the certificate in ${certFile}`,
        remedy:
          'Name a certificate and its own key. The certificate of the server comes first in its file. Until then a running server keeps the certificate that it has, and none starts.',
      },
    ])
    write(pair.cert, pair.cert)
    expect(check()).toMatchObject([{ status: 'fault', message: `${keyFile} has no private key` }])
    write('', pair.key)
    expect(check()).toMatchObject([{ status: 'fault', message: `${certFile} has no certificate` }])
    write(pair.cert, pair.key)
    rmSync(keyFile)
    expect(check()).toMatchObject([{ status: 'fault', message: `${keyFile} cannot be read` }])
  })

  test('are a fault before the certificate is valid, and after it', () => {
    write(pair.cert, pair.key)
    expect(check(Date.now() - 2 * dayMs)).toMatchObject([
      { status: 'fault', message: expect.stringMatching(/^otp\.example\.com is valid from 20.* on$/) },
    ])
    expect(check(Date.now() + 91 * dayMs)).toMatchObject([
      { status: 'fault', message: expect.stringMatching(/^otp\.example\.com ended 20/) },
    ])
  })
})
