import ipaddr from 'ipaddr.js'
import type { WebhookTargets } from '../domain/webhooks/endpoints.ts'

/** Private targets that the operator allows, also by `http`: host names in lower case, and CIDRs. */
export type TargetAllowlist = { hosts: string[]; cidrs: string[] }

export type TargetGuard = WebhookTargets & {
  /** Host name or IP address of a URL, without brackets and trailing dot. */
  normalizedHost(url: URL): string
  /** Whether a connection to this address is allowed, for a URL with this host. */
  allows(host: string, address: string): boolean
}

type Address = ReturnType<typeof ipaddr.process>

/**
 * SSRF guard for webhook targets: allows public addresses by `https`. Loopback, private, link-local and all
 * other special ranges are refused, in any notation, unless the operator allows them. `sender.ts` applies it
 * again to the resolved addresses, and pins them (DNS rebinding).
 */
export function createTargetGuard(allowlist: TargetAllowlist): TargetGuard {
  const hosts = new Set(allowlist.hosts)
  const cidrs = allowlist.cidrs.map((cidr) => ipaddr.parseCIDR(cidr))

  const isAllowlisted = (address: Address) =>
    cidrs.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))

  const allows = (host: string, text: string) => {
    if (hosts.has(host)) return true
    // `process` maps `::ffff:10.0.0.1` to 10.0.0.1.
    const address = ipaddr.isValid(text) ? ipaddr.process(text) : undefined
    return address !== undefined && (isPublic(address) || isAllowlisted(address))
  }

  /** Whether the operator allows the host explicitly. */
  const isExempt = (host: string) =>
    hosts.has(host) || (ipaddr.isValid(host) && isAllowlisted(ipaddr.process(host)))

  return {
    normalizedHost,
    allows,
    findFault(text) {
      // URL parsers disagree about backslashes and missing slashes.
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
 * ipaddr.js calls every IPv6 address outside the special ranges it knows unicast, including `::7f00:1` (a
 * deprecated form of 127.0.0.1). Global unicast is only 2000::/3 so far (RFC 4291 §2.4, IANA).
 */
const isPublic = (address: Address) =>
  address.range() === 'unicast' && (address.kind() === 'ipv4' || address.match(globalUnicast))
