import { BlockList } from 'node:net'
import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { signatureHeaders } from '../../../src/shared/webhook-signature.ts'
import { createTargetGuard } from '../../../src/webhooks/targets.ts'
import { defineProperty } from '../property.ts'

/** Addresses that no webhook may reach, from IANA's special-purpose registries, matched by an independent library. */
// One list per address family: in a shared list an IPv4 address would match IPv6 rules in its mapped form.
const specialIpv4Ranges = new BlockList()
const specialIpv6Ranges = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  specialIpv4Ranges.addSubnet(network, bits, 'ipv4')
}
for (const [network, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  specialIpv6Ranges.addSubnet(network, bits, 'ipv6')
}
// Only 2000::/3 is public: RFC 4291 §2.4.
for (const first of [0, 4, 6, 8, 0xa, 0xc, 0xe])
  specialIpv6Ranges.addSubnet(`${first.toString(16)}000::`, 3, 'ipv6')

const strictGuard = createTargetGuard({ hosts: [], cidrs: [] })

const octets = (address: number) => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255)
/** IPv4 addresses of the whole space, with many from the special ranges. */
const ipv4 = fc
  .oneof(
    fc.nat(0xffff_ffff),
    fc
      .tuple(fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 255), fc.nat(0xff_ffff))
      .map(([first, rest]) => first * 0x100_0000 + rest),
  )
  .map((number) => octets(number).join('.'))

/** Spellings of an address that people use and URL parsers accept (WHATWG URL §3.5). */
const ipv4Form = ipv4.chain((text) => {
  const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number)
  const addressNumber = a * 0x100_0000 + b * 0x1_0000 + c * 0x100 + d
  return fc
    .constantFrom(
      text,
      String(addressNumber),
      `0x${addressNumber.toString(16)}`,
      `0${addressNumber.toString(8)}`,
      `${a}.${b * 0x1_0000 + c * 0x100 + d}`,
      `${a}.${b}.${c * 0x100 + d}`,
      [a, b, c, d].map((part) => `0x${part.toString(16)}`).join('.'),
      [a, b, c, d].map((part) => `0${part.toString(8)}`).join('.'),
      `${text}.`,
      `[::ffff:${text}]`,
    )
    .map((form) => ({ text, form }))
})

const group = fc.oneof(fc.constant(0), fc.nat(0xffff))
const ipv6 = fc
  .tuple(
    fc.oneof(
      fc.nat(0xffff),
      fc.constantFrom(0, 0x2001, 0x2002, 0x3fff, 0xfc00, 0xfd00, 0xfe80, 0xff02, 0x64),
    ),
    fc.array(group, { minLength: 7, maxLength: 7 }),
  )
  .map(([first, rest]) => [first, ...rest].map((part) => part.toString(16)).join(':'))

const hexSecret = fc
  .uint8Array({ minLength: 24, maxLength: 24 })
  .map((bytes) => `whsec_${Buffer.from(bytes).toString('hex')}`)
/** Real time, because the library uses the clock and refuses timestamps older than five minutes. */
const nowMs = fc.constant(null).map(() => Date.now())

export const webhookProperties = [
  defineProperty('an IPv4 address is reachable exactly if it is public, in every spelling', 5_000, () => ({
    property: fc.property(ipv4Form, ({ text, form }) => {
      const isSpecial = specialIpv4Ranges.check(text, 'ipv4')
      expect(strictGuard.allows('host.example', text)).toBe(!isSpecial)
      expect(strictGuard.findFault(`https://${form}/hook`) === undefined).toBe(!isSpecial)
    }),
  })),

  defineProperty('an IPv6 address is reachable exactly if it is public', 5_000, () => ({
    property: fc.property(ipv6, (text) => {
      // Mapped addresses count as IPv4.
      if (text.startsWith('0:0:0:0:0:ffff:')) return
      const isSpecial = specialIpv6Ranges.check(text, 'ipv6')
      expect(strictGuard.allows('host.example', text)).toBe(!isSpecial)
      expect(strictGuard.findFault(`https://[${text}]/`) === undefined).toBe(!isSpecial)
    }),
  })),

  defineProperty('a URL that may be registered is https and has no user name and no fragment', 5_000, () => {
    const piece = fc.constantFrom(
      'https:',
      'http:',
      'HTTPS:',
      '//',
      '/',
      '\\',
      'example.com',
      '127.0.0.1',
      'localhost',
      '[::1]',
      '@',
      ':',
      '443',
      '#',
      '?',
      '%2e',
      '.',
      'user',
      '\t',
      ' ',
      '。',
      'a',
      '\0',
    )
    const composed = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
    const withScheme = composed.map((rest) => `https://${rest}`)
    const property = fc.property(
      fc.oneof(withScheme, composed, fc.webUrl(), fc.string({ unit: 'binary' })),
      (text) => {
        if (strictGuard.findFault(text) !== undefined) return
        const url = new URL(text)
        expect([url.protocol, url.username, url.password, url.hash]).toEqual(['https:', '', '', ''])
        expect(url.hostname).not.toMatch(/^(127(\.\d+){1,3}|\[::1\])$/)
      },
    )
    return { property }
  }),

  defineProperty('the stock library verifies every signature, and none after a change', 1_000, () => ({
    property: fc.property(
      fc.stringMatching(/^evt_[0-9a-z]{26}$/),
      fc.jsonValue(),
      hexSecret,
      hexSecret,
      nowMs,
      fc.nat(),
      (id, value, secret, otherSecret, now, offset) => {
        const body = JSON.stringify({ data: value })
        const headers = signatureHeaders(secret, { id, body }, now)
        const verify = (text: string, changed = {}, key = secret) =>
          new Webhook(key).verify(text, { ...headers, ...changed })
        expect(verify(body)).toEqual(JSON.parse(body))
        const index = offset % body.length
        const changed = body.slice(0, index) + (body[index] === 'x' ? 'y' : 'x') + body.slice(index + 1)
        expect(() => verify(changed)).toThrow()
        expect(() => verify(`${body} `)).toThrow()
        expect(() => verify(body, { 'webhook-id': `${id}0` })).toThrow()
        expect(() => verify(body, { 'webhook-timestamp': String(Math.floor(now / 1000) - 1) })).toThrow()
        if (secret !== otherSecret) expect(() => verify(body, {}, otherSecret)).toThrow()
      },
    ),
  })),
]
