import ipaddr from 'ipaddr.js'
import type { WebhookTargets } from '../domain/webhooks/endpoints.ts'

/** What the operator allows although it is private: names in lower case, and CIDRs. By `http`, too. */
export type TargetAllowlist = { hosts: string[]; cidrs: string[] }

export type TargetGuard = WebhookTargets & {
  /** The name or address, without brackets and without a dot at its end. */
  normalizedHost(url: URL): string
  /** Whether a connection may be made to this address, found under that name. */
  allows(host: string, address: string): boolean
}

type Address = ReturnType<typeof ipaddr.process>

/**
 * Decides where events may go: public addresses, by `https`. Loopback, private, link-local and every other special
 * range is refused, in whatever form it is written, unless the operator allows it.
 */
export function createTargetGuard(allowlist: TargetAllowlist): TargetGuard {
  const hosts = new Set(allowlist.hosts)
  const cidrs = allowlist.cidrs.map((cidr) => ipaddr.parseCIDR(cidr))

  const isAllowlisted = (address: Address) =>
    cidrs.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))

  const allows = (host: string, text: string) => {
    if (hosts.has(host)) return true
    // Takes `::ffff:10.0.0.1` for 10.0.0.1.
    const address = ipaddr.isValid(text) ? ipaddr.process(text) : undefined
    return address !== undefined && (isPublic(address) || isAllowlisted(address))
  }

  /** Allowed on purpose, and not only by being public. */
  const isExempt = (host: string) =>
    hosts.has(host) || (ipaddr.isValid(host) && isAllowlisted(ipaddr.process(host)))

  return {
    normalizedHost,
    allows,
    findFault(text) {
      // Backslashes and missing slashes are forms that URL readers disagree about.
      if (/[\s\p{Cc}\\]/u.test(text) || !URL.canParse(text)) return 'Expected a URL.'
      if (!/^https?:\/\/[^/]/i.test(text)) return 'Expected an https URL.'
      if (/^[^/]*\/\/[^/?#]*@/.test(text)) return 'Expected a URL without user name and password.'
      if (text.includes('#')) return 'Expected a URL without a fragment.'
      const url = new URL(text)
      const host = normalizedHost(url)
      if (url.protocol === 'http:' && !isExempt(host)) return 'Expected an https URL.'
      if (ipaddr.isValid(host) && !allows(host, host)) {
        return 'Expected a public address. The operator of this service can allow others.'
      }
      return undefined
    },
  }
}

const normalizedHost = (url: URL) => url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')

const globalUnicast = ipaddr.parseCIDR('2000::/3')

/**
 * ipaddr.js calls every IPv6 address unicast that lies in none of the special ranges it knows, `::7f00:1` (an old form
 * of 127.0.0.1) among them. RFC 4291 §2.4 and IANA have given out 2000::/3 alone.
 */
const isPublic = (address: Address) =>
  address.range() === 'unicast' && (address.kind() === 'ipv4' || address.match(globalUnicast))
