import { expect } from 'bun:test'
import * as fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { networkOf, isInRange, parseRange } from '../../../src/domain/model/network.ts'
import { defineProperty } from '../property.ts'

const parseAddress = (text: string) => ipaddr.process(text)
const address = fc.oneof(
  fc.ipV4(),
  // RFC 4291 §2.5.5.1 deprecates this form, and the reference reads it as a mapped address (§2.5.5.2).
  fc.ipV6().filter((text) => !/^::\d+\./.test(text)),
  fc.ipV4().map((v4) => `::ffff:${v4}`),
)

export const networkProperties = [
  defineProperty('an address is in a range exactly when the reference says so', 2_000, () => ({
    property: fc.property(address, address, fc.nat(32), fc.boolean(), (one, other, bits, same) => {
      const base = parseAddress(same ? one : other)
      const length = base.kind() === 'ipv4' ? bits : bits * 4
      const tested = parseAddress(one)
      const expected =
        (tested instanceof ipaddr.IPv4 && base instanceof ipaddr.IPv4 && tested.match(base, length)) ||
        (tested instanceof ipaddr.IPv6 && base instanceof ipaddr.IPv6 && tested.match(base, length))
      expect(isInRange(one, [parseRange(`${base.toString()}/${length}`)])).toBe(expected)
    }),
  })),

  defineProperty('a client is an IPv4 address or a /64, however it is written', 2_000, () => ({
    property: fc.property(address, (text) => {
      const parsed = parseAddress(text)
      const client = networkOf(text)
      expect(client).toBeDefined()
      expect(networkOf(parsed.toString().toUpperCase())).toBe(client)
      if (parsed instanceof ipaddr.IPv6) {
        const [a, b, c, d] = parsed.parts
        const neighbour = `${[a, b, c, d].map((part) => part?.toString(16)).join(':')}:1:2:3:4`
        expect(networkOf(neighbour)).toBe(client)
      }
    }),
  })),
]
