import ipaddr from 'ipaddr.js'
import type { WebhookTargets } from '../domain/webhooks/endpoints.ts'

/** Private targets that the operator allows, also by `http`: host names in lower case, and CIDRs. */
type TargetAllowlist = { hosts: string[]; cidrs: string[] }

export type TargetGuard = WebhookTargets & {
  /** Host name or IP address of a URL, without brackets and trailing dot. */
  normalizedHost(url: URL): string
  /** Whether a connection to this address is allowed, for a URL with this host. */
  allows(host: string, address: string): boolean
  /** Whether a connection to the port of this URL is allowed. */
  allowsPort(url: URL): boolean
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

  const allowsPort = (url: URL) => {
    const port = portOf(url)
    if (port === 0) return false
    const isWebPort = port === 443 || port === 80 || (port >= 1024 && !servicePorts.has(port))
    return isWebPort || isExempt(normalizedHost(url))
  }

  return {
    normalizedHost,
    allows,
    allowsPort,
    findFault(text) {
      // URL parsers disagree about backslashes and missing slashes.
      if (/[\s\p{Cc}\\]/u.test(text) || !URL.canParse(text)) return 'Expected a URL.'
      if (!/^https?:\/\/[^/]/i.test(text)) return 'Expected an https URL.'
      if (/^[^/]*\/\/[^/?#]*@/.test(text)) return 'Expected a URL without user name and password.'
      if (text.includes('#')) return 'Expected a URL without a fragment.'
      const url = new URL(text)
      const host = normalizedHost(url)
      // `https://.`, `https://a..b`: resolvers disagree about empty labels.
      if (host.split('.').includes('')) return 'Expected a URL with a host name.'
      if (!allowsPort(url)) {
        return 'Expected port 443, 80 or one above 1023 that no database or cluster uses. The operator of this service can allow others.'
      }
      const isLocal = ipaddr.isValid(host) ? !allows(host, host) : isLocalName(host) && !isExempt(host)
      if (isLocal) {
        return 'Expected a public host: no delivery can reach this one. To receive webhooks on your own machine, run `otpd webhook listen`. The operator of this service can allow a private host with OTPD_WEBHOOK_ALLOW.'
      }
      if (url.protocol === 'http:' && !isExempt(host)) return 'Expected an https URL.'
      return undefined
    },
  }
}

/**
 * Tells whether a name is loopback or private by definition: `localhost` (RFC 6761 §6.3), mDNS (RFC 6762 §3), and the names
 * that ICANN reserved for private networks.
 */
const isLocalName = (host: string) => /(^|\.)localhost$|\.(local|internal)$/i.test(host)

/** Returns the port of a URL: that of its scheme without one. Nothing listens on port 0. */
export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'http:' ? 80 : 443
}

const normalizedHost = (url: URL) => url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')

/** Docker, etcd, MySQL, PostgreSQL, CouchDB, Redis, Consul, Elasticsearch, kubelet, Memcached and MongoDB. */
const servicePorts = new Set([2375, 2379, 3306, 5432, 5984, 6379, 8500, 9200, 10250, 11211, 27017])

/**
 * Azure's platform address, which answers its virtual machines although it is public. The metadata addresses of other
 * clouds are link-local, private or reserved.
 */
const azurePlatform = '168.63.129.16'

const globalUnicast = ipaddr.parseCIDR('2000::/3')

/**
 * ipaddr.js calls every IPv6 address outside the special ranges it knows unicast, including `::7f00:1` (a
 * deprecated form of 127.0.0.1). Global unicast is only 2000::/3 so far (RFC 4291 §2.4, IANA).
 */
const isPublic = (address: Address) =>
  address.range() === 'unicast' &&
  (address.kind() === 'ipv4' ? address.toString() !== azurePlatform : address.match(globalUnicast))
