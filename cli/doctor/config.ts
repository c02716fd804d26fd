import { BlockList, isIP } from 'node:net'
import type { Config, LoadedConfig } from '../../src/config/config.ts'
import { fault, ok, warning, type Check } from '../../src/shared/check.ts'
import { isLoopback } from '../../src/shared/loopback.ts'
import { firstProblems } from '../terminal/problems.ts'

/** Reports the first problems of the configuration, each with its line or variable; one `ok` check if there is none. */
export function configurationChecks({ config, problems, warnings }: LoadedConfig): Check[] {
  const name = 'configuration'
  const ignored = warnings.map(({ source, message, remedy }) =>
    warning(name, `${source}: ${message}`, remedy),
  )
  if (config !== null) return [ok(name, config.configFile ?? 'no file; environment and defaults'), ...ignored]
  return firstProblems(problems).map(({ source, message, remedy }) =>
    fault(name, `${source}: ${message}`, remedy),
  )
}

/** Checks the listen address, the public URL and the trusted proxies. */
export function addressChecks({ listen, publicUrl, tls, trustedProxies }: Config): Check[] {
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host
  const name = 'address'
  const isLocal = isLoopback(listen.host)
  const listenText = `listens on ${host}:${listen.port}`
  const isPublic = publicUrl !== null && !isLoopback(new URL(publicUrl).hostname)
  const broadCidr = trustedProxies.find((cidr) => isTooBroad(cidr))
  const checks: Check[] = []
  if (tls !== null && !isLocal && publicUrl === null) {
    checks.push(
      warning(
        name,
        `${listenText} with HTTPS, and it has no public URL`,
        'Set in [server] a name of the certificate: publicUrl = "https://otp.example.com"',
      ),
    )
  } else if (tls !== null) {
    checks.push(ok(name, `${listenText} with HTTPS${publicUrl === null ? '' : `, public URL ${publicUrl}`}`))
  } else if (!isLocal && publicUrl === null) {
    checks.push(
      warning(
        name,
        `${listenText}: other machines reach it over plain http, and it has no public URL`,
        'Serve HTTPS: --domain otp.example.com (otpd docs tls); or put a proxy in front, and set publicUrl of [server].',
      ),
    )
  } else if (isPublic && publicUrl.startsWith('http:')) {
    checks.push(
      warning(
        name,
        `clients reach it at ${publicUrl}: passwords, secrets and codes cross the network unencrypted`,
        'Serve HTTPS (otpd docs tls) or put a proxy in front that does, and use https in publicUrl of [server].',
      ),
    )
  } else if (isPublic && trustedProxies.length === 0) {
    checks.push(
      warning(
        name,
        `clients connect through ${publicUrl}, but no proxy is trusted: all clients seem to share one address`,
        'Name the proxy in [server]: trustedProxies = ["127.0.0.1"]',
      ),
    )
  } else
    checks.push(
      ok(
        name,
        publicUrl === null ? `${listenText}, this machine only` : `${listenText}, public URL ${publicUrl}`,
      ),
    )
  if (broadCidr !== undefined) {
    checks.push(
      warning(
        'proxies',
        `${broadCidr} is trusted: any host in that range can forge client addresses`,
        'List only the addresses of your proxies in trustedProxies of [server].',
      ),
    )
  }
  return checks
}

/** Checks which private addresses webhooks may reach. */
export function webhookChecks({ webhooks }: Config): Check[] {
  const name = 'webhooks'
  const { hosts, cidrs } = webhooks.allow
  const remedy = 'List only the hosts that you need in allow of [webhooks].'
  const broadCidr = cidrs.find((cidr) => isTooBroad(cidr))
  if (broadCidr !== undefined)
    return [warning(name, `${broadCidr} is allowed: webhooks can reach almost any address`, remedy)]
  const metadata = cidrs.find((cidr) => contains(cidr, '169.254.169.254'))
  if (metadata !== undefined) {
    return [
      warning(
        name,
        `${metadata} is allowed: it includes 169.254.169.254, where clouds hand out credentials`,
        remedy,
      ),
    ]
  }
  const allowed = [...hosts, ...cidrs]
  return [
    ok(name, allowed.length === 0 ? 'public addresses only' : `public addresses and ${allowed.join(', ')}`),
  ]
}

/** Whether a range is larger than the largest private networks (10.0.0.0/8, fc00::/7). */
function isTooBroad(cidr: string) {
  const [address = '', bits] = cidr.split('/')
  return Number(bits) < (isIP(address) === 6 ? 7 : 8)
}

/** Whether an IPv4 range contains an IPv4 address. */
function contains(cidr: string, address: string) {
  const [network = '', bits] = cidr.split('/')
  if (isIP(network) !== 4) return false
  const list = new BlockList()
  list.addSubnet(network, Number(bits))
  return list.check(address)
}
