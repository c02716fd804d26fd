import { BlockList, isIP } from 'node:net'
import type { Config, LoadedConfig } from '../../src/config/config.ts'
import { fault, ok, warning, type Check } from './check.ts'
import { isLoopback } from '../session/server-choice.ts'

/** Every problem of the configuration with the line or variable that has it; one line where there is none. */
export function configurationChecks({ config, problems }: LoadedConfig): Check[] {
  const name = 'configuration'
  if (config !== null) return [ok(name, config.configFile ?? 'no file; environment and defaults')]
  return problems.map(({ source, message, remedy }) => fault(name, `${source}: ${message}`, remedy))
}

/** Where the server listens, under which address it is known, and who speaks for its clients. */
export function addressChecks({ listen, publicUrl, trustedProxies }: Config): Check[] {
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host
  const name = 'address'
  const isLocal = isLoopback(host)
  const listenText = `listens on ${host}:${listen.port}`
  const isPublic = publicUrl !== null && !isLoopback(new URL(publicUrl).hostname)
  const broadCidr = trustedProxies.find((cidr) => isTooBroad(cidr))
  const checks: Check[] = []
  if (!isLocal && publicUrl === null) {
    checks.push(
      warning(
        name,
        `${listenText}: other machines reach it by plain http, and it has no public URL`,
        'Put a proxy with TLS in front, and its address below [server]: publicUrl = "https://otp.example.com"',
      ),
    )
  } else if (isPublic && publicUrl.startsWith('http:')) {
    checks.push(
      warning(
        name,
        `clients reach it at ${publicUrl}: passwords, secrets and codes go over the network in clear`,
        'Put a proxy with TLS in front, and https into publicUrl below [server].',
      ),
    )
  } else if (isPublic && trustedProxies.length === 0) {
    checks.push(
      warning(
        name,
        `clients come by ${publicUrl}, and no proxy is trusted: they all count as one address`,
        'Name the proxy below [server]: trustedProxies = ["127.0.0.1"]',
      ),
    )
  } else
    checks.push(
      ok(name, publicUrl === null ? `${listenText}, for this machine` : `${listenText}, as ${publicUrl}`),
    )
  if (broadCidr !== undefined) {
    checks.push(
      warning(
        'proxies',
        `${broadCidr} is trusted: whoever is there can claim any client address`,
        'Leave the addresses of your proxies in trustedProxies below [server].',
      ),
    )
  }
  return checks
}

/** What webhooks may reach though it is private. */
export function webhookChecks({ webhooks }: Config): Check[] {
  const name = 'webhooks'
  const { hosts, cidrs } = webhooks.allow
  const remedy = 'Name the hosts that you mean in allow below [webhooks].'
  const broadCidr = cidrs.find((cidr) => isTooBroad(cidr))
  if (broadCidr !== undefined)
    return [warning(name, `${broadCidr} is allowed: they reach nearly everything`, remedy)]
  const metadata = cidrs.find((cidr) => contains(cidr, '169.254.169.254'))
  if (metadata !== undefined) {
    return [warning(name, `${metadata} is allowed: clouds give their credentials out there`, remedy)]
  }
  const allowed = [...hosts, ...cidrs]
  return [
    ok(name, allowed.length === 0 ? 'public addresses only' : `public addresses, and ${allowed.join(', ')}`),
  ]
}

/** Larger than the largest private networks (10.0.0.0/8, fc00::/7). */
function isTooBroad(cidr: string) {
  const [address = '', bits] = cidr.split('/')
  return Number(bits) < (isIP(address) === 6 ? 7 : 8)
}

/** @param address of IPv4 */
function contains(cidr: string, address: string) {
  const [network = '', bits] = cidr.split('/')
  if (isIP(network) !== 4) return false
  const list = new BlockList()
  list.addSubnet(network, Number(bits))
  return list.check(address)
}
