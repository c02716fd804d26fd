import { isIP } from 'node:net'
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'

/** The value of a setting, or what is wrong with it and what to write instead. */
export type Parsed<T> = { value: T } | { fault: string; remedy: string }

export type ListenAddress = { host: string; port: number }
export type WebhookAllow = { hosts: string[]; cidrs: string[] }

/** Shows a faulty value safely and briefly. Never used for what may hold a secret. */
export function quote(text: string): string {
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text
  return JSON.stringify(shown)
}

export function parseChoice<const T extends string>(...choices: T[]): (text: string) => Parsed<T> {
  return (text) => {
    const value = choices.find((choice) => choice === text)
    if (value !== undefined) return { value }
    const last = choices.at(-1) ?? ''
    return {
      fault: `${quote(text)} is not known.`,
      remedy: `Give ${choices.slice(0, -1).join(', ')} or ${last}.`,
    }
  }
}

export function parseSwitch(text: string): Parsed<boolean> {
  const word = text.toLowerCase()
  if (['true', '1', 'yes', 'on'].includes(word)) return { value: true }
  if (['false', '0', 'no', 'off'].includes(word)) return { value: false }
  return { fault: `${quote(text)} is neither true nor false.`, remedy: 'Give true or false.' }
}

export function parseInteger(min: number, max: number): (text: string) => Parsed<number> {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return { value }
    return { fault: `${quote(text)} does not fit.`, remedy: `Give a whole number from ${min} to ${max}.` }
  }
}

/** `HOST:PORT`; an IPv6 address stands in brackets (RFC 3986 §3.2.2) and comes back without them. */
export function parseListen(text: string): Parsed<ListenAddress> {
  const remedy = 'Give HOST:PORT, for example 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080.'
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text)
  if (!match) return { fault: `${quote(text)} is not HOST:PORT.`, remedy }
  const [, bracketed, unbracketed = '', digits = ''] = match
  const port = Number(digits)
  if (port > 65_535) return { fault: `There is no port ${digits}.`, remedy: 'Give a port from 0 to 65535.' }
  const isValidHost =
    bracketed === undefined ? isIP(unbracketed) === 4 || isHostName(unbracketed) : isIP(bracketed) === 6
  if (!isValidHost)
    return { fault: `${quote(bracketed ?? unbracketed)} is not a host or an address.`, remedy }
  return { value: { host: (bracketed ?? unbracketed).toLowerCase(), port } }
}

/** Whether only this machine reaches the host: an address of 127.0.0.0/8, `::1` or the name `localhost`. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  return isIP(host) !== 0 && ipaddr.process(host).range() === 'loopback'
}

/** An absolute path; a relative one starts at `base`. */
export function parsePath(text: string, base: string): Parsed<string> {
  if (!text.startsWith('~')) return { value: resolve(base, text) }
  return {
    fault: 'The path begins with ~, which only a shell replaces.',
    remedy: 'Write the path out in full.',
  }
}

/** The address of this server for clients, without the slash at its end. */
export function parsePublicUrl(text: string): Parsed<string> {
  const url = parseUrl(text)
  if ('fault' in url) return url
  return { value: `${url.value.origin}${url.value.pathname.replace(/\/+$/, '')}` }
}

/**
 * The address of an identity provider, kept to the letter: an issuer is compared with a token's `iss` character
 * by character, and has neither query nor fragment (OpenID Connect Discovery 1.0 §3).
 */
export function parseProviderUrl(text: string): Parsed<string> {
  const url = parseUrl(text)
  if ('fault' in url) return url
  const { protocol, hostname } = url.value
  if (protocol === 'https:' || isLoopback(hostname.replace(/^\[|\]$/g, ''))) return { value: text }
  return {
    fault: 'Keys that come over plain http could be anybody’s.',
    remedy: 'Use https; http only on loopback.',
  }
}

function parseUrl(text: string): Parsed<URL> {
  const remedy = 'Give an address such as https://otp.example.com.'
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:\/\/\S+$/i.test(text))
    return { fault: 'This is not an http or https address.', remedy }
  if (url.username || url.password) return { fault: 'The address holds a user name or password.', remedy }
  if (/[?#]/.test(text)) return { fault: 'The address has a query or a fragment.', remedy }
  return { value: url }
}

export function parseWords(text: string): Parsed<string[]> {
  return parseEach(text, (word) => ({ value: word }))
}

export function parseCidrs(text: string): Parsed<string[]> {
  return parseEach(text, parseCidr)
}

/** Origins as RFC 6454 §6.2 writes them: scheme, host, and a port that is not the scheme's own. */
export function parseOrigins(text: string): Parsed<string[]> {
  return parseEach<string>(text, (word) => {
    const url = /^https?:\/\/[^*]+$/i.test(word) && URL.canParse(word) ? new URL(word) : undefined
    if (url?.origin === word) return { value: word }
    const displayName = url?.username || url?.password ? 'An address with a password' : quote(word)
    const remedy = `Write ${url ? quote(url.origin) : 'each origin, for example https://console.example.com'}.`
    return { fault: `${displayName} is not an origin.`, remedy }
  })
}

/** Names and networks apart: a name is allowed whatever it resolves to, a network whatever its name. */
export function parseWebhookAllow(text: string): Parsed<WebhookAllow> {
  const words = parseEach<{ host: string | null; cidr: string | null }>(text, (word) => {
    const cidr = parseCidr(word.replace(/^\[(.*)\]$/, '$1'))
    if ('value' in cidr) return { value: { host: null, cidr: cidr.value } }
    if (isHostName(word)) return { value: { host: word.toLowerCase(), cidr: null } }
    return {
      fault: `${quote(word)} is not a host, an address or a CIDR.`,
      remedy: 'Give names without scheme, port or *, or networks such as 10.0.0.0/8.',
    }
  })
  if ('fault' in words) return words
  const hosts = words.value.flatMap(({ host }) => host ?? [])
  return { value: { hosts, cidrs: words.value.flatMap(({ cidr }) => cidr ?? []) } }
}

export function parseEmail(text: string): Parsed<string> {
  if (text.length <= 254 && /^[^\s@]+@[^\s@]+$/.test(text)) return { value: text }
  return {
    fault: `${quote(text)} is not an e-mail address.`,
    remedy: 'Give one address, such as ada@example.com.',
  }
}

/** One address counts as the network that holds it alone. */
function parseCidr(word: string): Parsed<string> {
  const [address = '', prefix, ...rest] = word.split('/')
  const version = address.includes('%') ? 0 : isIP(address)
  const bits = version === 4 ? 32 : 128
  const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Infinity
  if (version === 0 || length > bits || rest.length > 0) {
    return {
      fault: `${quote(word)} is not an address or a CIDR.`,
      remedy: 'Give networks such as 10.0.0.0/8 or fd00::/8.',
    }
  }
  const family = version === 4 ? ipaddr.IPv4 : ipaddr.IPv6
  return { value: `${family.networkAddressFromCIDR(`${address}/${length}`).toString()}/${length}` }
}

/** RFC 1123 §2.1. A last label of digits alone would be a mistyped address. */
function isHostName(text: string): boolean {
  if (text.length > 253) return false
  const labels = text.split('.')
  return (
    labels.every((label) => /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/i.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? '')
  )
}

export function parseEach<T>(text: string, parse: (word: string) => Parsed<T>): Parsed<T[]> {
  const value: T[] = []
  for (const word of new Set(text.split(',').map((part) => part.trim()))) {
    if (word === '') continue
    const parsed = parse(word)
    if ('fault' in parsed) return parsed
    value.push(parsed.value)
  }
  return { value }
}
