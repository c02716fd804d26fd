import { describe, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from '../../src/tls/account.ts'
import { createRequest } from '../../src/tls/csr.ts'
import { encodeInteger } from '../../src/tls/der.ts'
import { coversHost } from '../../src/tls/pair.ts'
import { certificateId, renewalTime } from '../../src/tls/renewal.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'

const dayMs = 86_400_000
const lifetime = { notBefore: 0, notAfter: 90 * dayMs }

describe('the time of a renewal', () => {
  test('is when a third of the lifetime is left', () => {
    expect(renewalTime(lifetime, undefined, 0.5)).toBe(60 * dayMs)
    expect(renewalTime({ notBefore: 0, notAfter: 60_000 }, undefined, 0.5)).toBe(40_000)
  })

  test('is in the window that the authority suggests', () => {
    const window = { start: 50 * dayMs, end: 52 * dayMs }
    expect([0, 0.5, 1].map((random) => renewalTime(lifetime, window, random) / dayMs)).toEqual([50, 51, 52])
  })

  test('is never right after the last one, nor so late that a failure could not be repeated', () => {
    expect(renewalTime(lifetime, { start: -dayMs, end: -dayMs }, 0.5)).toBe(3_600_000)
    expect(renewalTime(lifetime, { start: 100 * dayMs, end: 100 * dayMs }, 0.5)).toBe(75 * dayMs)
    expect(renewalTime({ notBefore: 0, notAfter: 60_000 }, { start: 0, end: 0 }, 0.5)).toBe(20_000)
  })
})

test('integers in DER are positive and have no superfluous zeros', () => {
  const encode = (...bytes: number[]) => Buffer.from(encodeInteger(Buffer.from(bytes))).toString('hex')
  expect([encode(1), encode(0, 0, 0x7f), encode(0x80), encode(0, 0)]).toEqual([
    '020101',
    '02017f',
    '02020080',
    '020100',
  ])
})

describe.skipIf(!hasOpenssl)('with openssl', () => {
  const openssl = (args: string[], input: Uint8Array | string) => {
    const { stdout, stderr } = Bun.spawnSync(['openssl', ...args], { stdin: Buffer.from(input) })
    return stdout.toString() + stderr.toString()
  }

  test('every certificate request is valid, with all names', async () => {
    // Signatures differ in the length of their integers.
    for (let count = 0; count < 20; count++) {
      const names = Array.from({ length: 1 + count * 3 }, (_, index) => `name-${index}.example.com`)
      const request = await createRequest(names, await generateKey())
      const text = openssl(['req', '-inform', 'DER', '-verify', '-noout', '-text'], request)
      expect(text).toContain('verify OK')
      expect([...text.matchAll(/DNS:([\w.-]+)/g)].map(([, name = '']) => name)).toEqual(names)
    }
  })

  test('a certificate is named by the key of its issuer and its serial number', () => {
    const folder = mkdtempSync(join(tmpdir(), 'otpd-serial-'))
    const issuer = makeCertificate('authority.test')
    for (const [name, text] of Object.entries({
      'ca.pem': issuer.cert,
      'ca.key': issuer.key,
      ext: 'authorityKeyIdentifier = keyid',
    }))
      writeFileSync(join(folder, name), text)
    const args = [
      'req',
      '-new',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-keyout',
      '/dev/null',
      '-subj',
      '/CN=a',
    ]
    const request = openssl(args, '').replace(/[^]*(?=-----BEGIN CERTIFICATE REQUEST)/, '')
    const issue = (serial: string) =>
      openssl(
        [
          'x509',
          '-req',
          '-CA',
          join(folder, 'ca.pem'),
          '-CAkey',
          join(folder, 'ca.key'),
          '-extfile',
          join(folder, 'ext'),
          '-set_serial',
          serial,
        ],
        request,
      )
    const keyId = /Subject Key Identifier: *\n *([\dA-F:]+)/.exec(
      openssl(['x509', '-noout', '-text'], issuer.cert),
    )?.[1]
    const expectedKey = Buffer.from((keyId ?? '').replaceAll(':', ''), 'hex').toString('base64url')
    // The zero byte keeps the number positive.
    for (const [serial, bytes] of [
      ['0x8765', '008765'],
      ['0x0765', '0765'],
      ['0x5', '05'],
    ] as const)
      expect(certificateId(issue(serial))).toBe(
        `${expectedKey}.${Buffer.from(bytes, 'hex').toString('base64url')}`,
      )
    const withoutIssuer = openssl(
      ['x509', '-req', '-CA', join(folder, 'ca.pem'), '-CAkey', join(folder, 'ca.key')],
      request,
    )
    expect(new X509Certificate(withoutIssuer).subject).toBe('CN=a')
    expect(certificateId(withoutIssuer)).toBeUndefined()
    rmSync(folder, { recursive: true })
  })

  test.each([
    ['*.example.com', 'otp.example.com', true],
    ['*.example.com', 'a.otp.example.com', false],
    ['otp.example.com', 'OTP.example.com', true],
    ['otp.example.com', '192.0.2.1', false],
    ['otp.example.com', '[2001:db8::1]', false],
    ['otp.example.com', '', false],
  ])('a certificate for %s covers %s: %p', (name, host, isCovered) => {
    expect(coversHost(makeCertificate(name).cert, host)).toBe(isCovered)
  })
})
