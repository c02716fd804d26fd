/** An IP address as an integer of 32 or 128 bits. */
type Address = { bits: bigint; size: 32 | 128 }

type AddressRange = Address & { prefixLength: number }

/** Parses a CIDR range or single address, which the configuration has validated. */
export function parseRange(cidr: string): AddressRange {
  const [text = '', prefixLength] = cidr.split('/')
  const address = parseAddress(text)
  if (!address) throw new TypeError('a range of addresses is not valid')
  return { ...address, prefixLength: prefixLength === undefined ? address.size : Number(prefixLength) }
}

/**
 * Brings a CIDR range or single address to its one form: without host bits, IPv6 as RFC 5952 writes it.
 *
 * @returns undefined if it is neither
 */
export function canonicalRange(text: string): string | undefined {
  const [, addressText = '', lengthText] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = parseAddress(addressText)
  if (!address) return undefined
  const prefixLength = lengthText === undefined ? address.size : Number(lengthText)
  if (prefixLength > address.size) return undefined
  const hostBits = BigInt(address.size - prefixLength)
  const first = formatAddress({ ...address, bits: (address.bits >> hostBits) << hostBits })
  return hostBits === 0n ? first : `${first}/${prefixLength}`
}

function formatAddress({ bits, size }: Address): string {
  const [count, width, radix] = size === 32 ? [4, 8n, 10] : [8, 16n, 16]
  const groups = Array.from({ length: count }, (_, index) =>
    BigInt.asUintN(Number(width), bits >> (BigInt(count - 1 - index) * width)).toString(radix),
  )
  // The parser of URLs shortens IPv6 addresses.
  return size === 32 ? groups.join('.') : new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

/** Tells whether an address, or the IPv4 address in it, is in one of the ranges. False for text that is no address. */
export function isInRange(text: string, ranges: readonly AddressRange[]): boolean {
  // To parse an address takes longer than all else, and most lists are empty.
  if (ranges.length === 0) return false
  return ranges.some(rangeTest(text))
}

/** Parses an address once, for many ranges. @returns whether it, or the IPv4 address in it, is in a range */
export function rangeTest(text: string): (range: AddressRange) => boolean {
  const address = parseAddress(text)
  if (!address) return () => false
  const ipv4 = embeddedIpv4(address)
  return ({ bits, size, prefixLength }) => {
    const hostBits = BigInt(size - prefixLength)
    const isWithin = (one: Address) => one.size === size && one.bits >> hostBits === bits >> hostBits
    return isWithin(address) || (ipv4 !== undefined && isWithin(ipv4))
  }
}

/**
 * Identifies the network of one client: its IPv4 address, or the /64 of its IPv6 address, since a customer gets
 * at least a /64 and can send from all 2^64 of its addresses (RFC 6177). Undefined for text that is no address.
 */
export const networkOf = (text: string): string | undefined => networkKey(text, 32, 64)

/**
 * Identifies the wider network around a client: an IPv4 /24 or an IPv6 /56, which is the smallest block that
 * is cheap to rent addresses from. Undefined for text that is no address.
 */
export const wideNetworkOf = (text: string): string | undefined => networkKey(text, 24, 56)

function networkKey(text: string, ipv4Prefix: number, ipv6Prefix: number): string | undefined {
  const number = ipv4Number(text)
  if (number !== undefined) return `4:${(number >>> (32 - ipv4Prefix)).toString(16)}`
  const parsed = parseAddress(text)
  if (!parsed) return undefined
  const { bits, size } = embeddedIpv4(parsed) ?? parsed
  return `${size === 32 ? 4 : 6}:${(bits >> BigInt(size - (size === 32 ? ipv4Prefix : ipv6Prefix))).toString(16)}`
}

/**
 * Finds the IPv4 client behind an IPv6 address: of 6to4 (RFC 3056), where one IPv4 address has 2^16 networks of its own, and of
 * the well-known prefix of NAT64 (RFC 6052), where all IPv4 clients of the world share a network.
 */
function embeddedIpv4({ bits, size }: Address): Address | undefined {
  if (size === 128 && bits >> 112n === 0x2002n) return { bits: BigInt.asUintN(32, bits >> 80n), size: 32 }
  if (size === 128 && bits >> 32n === 0x64ff9bn << 64n) return { bits: BigInt.asUintN(32, bits), size: 32 }
  return undefined
}

/** Parses an address. An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) becomes the IPv4 address. */
function parseAddress(text: string): Address | undefined {
  if (!text.includes(':')) {
    const bits = parseIpv4(text)
    return bits === undefined ? undefined : { bits, size: 32 }
  }
  const bits = parseIpv6(text)
  if (bits === undefined) return undefined
  return bits >> 32n === 0xffffn ? { bits: bits & 0xffffffffn, size: 32 } : { bits, size: 128 }
}

function parseIpv4(text: string): bigint | undefined {
  const number = ipv4Number(text)
  return number === undefined ? undefined : BigInt(number)
}

const [dot, zero] = [46, 48]

/**
 * Reads an IPv4 address as an unsigned number, since each send needs it, and regular expressions and BigInt are slow.
 * Leading zeros are refused: some programs read such a part as octal (RFC 6943 §3.1.1).
 */
function ipv4Number(text: string): number | undefined {
  let [number, part, digits, dots] = [0, 0, 0, 0]
  for (let index = 0; index <= text.length; index++) {
    const code = index < text.length ? text.charCodeAt(index) : dot
    if (code === dot) {
      if (digits === 0 || digits > 3 || part > 255) return undefined
      number = number * 256 + part
      part = digits = 0
      dots++
    } else if (code >= zero && code <= zero + 9) {
      if (digits > 0 && part === 0) return undefined
      part = part * 10 + code - zero
      digits++
    } else return undefined
  }
  return dots === 4 ? number : undefined
}

function parseIpv6(text: string): bigint | undefined {
  const end = text.slice(text.lastIndexOf(':') + 1)
  const isDotted = end.includes('.')
  const last = isDotted ? parseIpv4(end) : undefined
  if (isDotted && last === undefined) return undefined
  const expanded =
    last === undefined
      ? text
      : `${text.slice(0, -end.length)}${(last >> 16n).toString(16)}:${(last & 0xffffn).toString(16)}`
  const [head = '', tail, ...more] = expanded.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = 8 - left.length - right.length
  if (more.length > 0 || (tail === undefined ? missing !== 0 : missing < 1)) return undefined
  const groups = [...left, ...Array<string>(missing).fill('0'), ...right]
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined
  return groups.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n)
}
