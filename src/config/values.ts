import { isIP } from 'node:net'
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { isLoopback } from '../shared/loopback.ts'
import { isSafeUrl } from '../shared/safe-url.ts'

/** The parsed value of a setting, or what is wrong with it and how to fix it. */
export type Parsed<T> = { value: T } | { fault: string; remedy: string }

export type ListenAddress = { host: string; port: number }
export type WebhookAllow = { hosts: string[]; cidrs: string[] }

/** Quotes an invalid value, shortened and escaped. Never used for values that may contain a secret. */
export function quote(text: string): string {
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text
  return JSON.stringify(shown)
}

/** Makes a parser that accepts one of the given words. */
export function parseChoice<const T extends string>(...choices: T[]): (text: string) => Parsed<T> {
  return (text) => {
    const value = choices.find((choice) => choice === text)
    if (value !== undefined) return { value }
    const last = choices.at(-1) ?? ''
    return {
      fault: `${quote(text)} is not a valid value.`,
      remedy: `Use ${choices.slice(0, -1).join(', ')} or ${last}.`,
    }
  }
}

/** Makes a parser that accepts a comma-separated list of the given words. */
export function parseChoices<const T extends string>(...choices: T[]): (text: string) => Parsed<T[]> {
  return (text) =>
    parseEach(text, (word) => {
      const value = choices.find((choice) => choice === word)
      if (value !== undefined) return { value }
      return { fault: `${quote(word)} is not a known word.`, remedy: `Use ${choices.join(', ')}.` }
    })
}

/** Parses a boolean, also written as 1/0, yes/no or on/off. */
export function parseSwitch(text: string): Parsed<boolean> {
  const word = text.toLowerCase()
  if (['true', '1', 'yes', 'on'].includes(word)) return { value: true }
  if (['false', '0', 'no', 'off'].includes(word)) return { value: false }
  return { fault: `${quote(text)} is neither true nor false.`, remedy: 'Use true or false.' }
}

/** Makes a parser that accepts whole numbers from `min` to `max`. */
export function parseInteger(min: number, max: number): (text: string) => Parsed<number> {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return { value }
    return {
      fault: `${quote(text)} is out of range or not a whole number.`,
      remedy: `Use a whole number from ${min} to ${max}.`,
    }
  }
}

/** Parses `HOST:PORT`. IPv6 addresses are written in brackets (RFC 3986 §3.2.2), which the result omits. */
export function parseListen(text: string): Parsed<ListenAddress> {
  const remedy = 'Use HOST:PORT, for example 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080.'
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text)
  if (!match) return { fault: `${quote(text)} is not HOST:PORT.`, remedy }
  const [, bracketed, unbracketed = '', digits = ''] = match
  const port = Number(digits)
  if (port > 65_535) return { fault: `${digits} is not a valid port.`, remedy: 'Use a port from 0 to 65535.' }
  const isValidHost =
    bracketed === undefined ? isIP(unbracketed) === 4 || isHostName(unbracketed) : isIP(bracketed) === 6
  if (!isValidHost)
    return { fault: `${quote(bracketed ?? unbracketed)} is not a host name or an IP address.`, remedy }
  return { value: { host: (bracketed ?? unbracketed).toLowerCase(), port } }
}

/** Formats `HOST:PORT`, as `parseListen` reads it. */
export const showListen = ({ host, port }: ListenAddress): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

/** Tells whether only this machine can reach a server that listens on the host, an address in any spelling. */
export function isLoopbackListen(host: string): boolean {
  const address = host.replace(/%.*$/, '')
  return isLoopback(isIP(address) === 0 ? host : ipaddr.process(address).toString())
}

/** Resolves a path; relative ones are relative to `base`. */
export function parsePath(text: string, base: string): Parsed<string> {
  if (!text.startsWith('~')) return { value: resolve(base, text) }
  return {
    fault: 'The path begins with ~, which only shells expand.',
    remedy: 'Write the full path.',
  }
}

/** Parses the public URL of this server; the result has no trailing slash. */
export function parsePublicUrl(text: string): Parsed<string> {
  const url = parseUrl(text)
  if ('fault' in url) return url
  return { value: `${url.value.origin}${url.value.pathname.replace(/\/+$/, '')}` }
}

/**
 * Parses the URL of an identity provider and returns it unchanged: an issuer is compared with a token's `iss` character
 * by character, and has neither query nor fragment (OpenID Connect Discovery 1.0 §3).
 */
export function parseProviderUrl(text: string): Parsed<string> {
  const url = parseUrl(text)
  if ('fault' in url) return url
  if (isSafeUrl(text)) return { value: text }
  return {
    fault: 'An answer over plain http can be forged.',
    remedy: 'Use https; http is allowed on loopback only.',
  }
}

function parseUrl(text: string): Parsed<URL> {
  const remedy = 'Use a URL such as https://otp.example.com.'
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:\/\/\S+$/i.test(text)) return { fault: 'This is not an http or https URL.', remedy }
  if (url.username || url.password) return { fault: 'The URL contains a user name or password.', remedy }
  if (/[?#]/.test(text)) return { fault: 'The URL contains a query or a fragment.', remedy }
  return { value: url }
}

/** Parses a comma-separated list of words. */
export function parseWords(text: string): Parsed<string[]> {
  return parseEach(text, (word) => ({ value: word }))
}

/** Parses a comma-separated list of addresses and CIDRs. */
export function parseCidrs(text: string): Parsed<string[]> {
  return parseEach(text, parseCidr)
}

/** Parses origins in the form of RFC 6454 §6.2: scheme, host, and the port unless it is the scheme's default. */
export function parseOrigins(text: string): Parsed<string[]> {
  return parseEach<string>(text, (word) => {
    const url = /^https?:\/\/[^*]+$/i.test(word) && URL.canParse(word) ? new URL(word) : undefined
    if (url?.origin === word) return { value: word }
    const displayName = url?.username || url?.password ? 'A URL with a password' : quote(word)
    const remedy = `Use ${url ? quote(url.origin) : 'origins such as https://console.example.com'}.`
    return { fault: `${displayName} is not an origin.`, remedy }
  })
}

/** Separates host names from networks: a name is allowed whatever it resolves to, a network under any name. */
export function parseWebhookAllow(text: string): Parsed<WebhookAllow> {
  const words = parseEach<{ host: string | null; cidr: string | null }>(text, (word) => {
    const cidr = parseCidr(word.replace(/^\[(.*)\]$/, '$1'))
    if ('value' in cidr) return { value: { host: null, cidr: cidr.value } }
    if (isHostName(word)) return { value: { host: word.toLowerCase(), cidr: null } }
    return {
      fault: `${quote(word)} is not a host name, an IP address or a CIDR.`,
      remedy: 'Use names without scheme, port or *, or networks such as 10.0.0.0/8.',
    }
  })
  if ('fault' in words) return words
  const hosts = words.value.flatMap(({ host }) => host ?? [])
  return { value: { hosts, cidrs: words.value.flatMap(({ cidr }) => cidr ?? []) } }
}

/** Checks the rough form of an e-mail address. */
export function parseEmail(text: string): Parsed<string> {
  if (text.length <= 254 && /^[^\s@]+@[^\s@]+$/.test(text)) return { value: text }
  return {
    fault: `${quote(text)} is not an e-mail address.`,
    remedy: 'Use one address, such as ada@example.com.',
  }
}

/** Parses a CIDR; a single address becomes the network that contains only it. */
function parseCidr(word: string): Parsed<string> {
  const [address = '', prefix, ...rest] = word.split('/')
  const version = address.includes('%') ? 0 : isIP(address)
  const bits = version === 4 ? 32 : 128
  const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Infinity
  if (version === 0 || length > bits || rest.length > 0) {
    return {
      fault: `${quote(word)} is not an IP address or a CIDR.`,
      remedy: 'Use networks such as 10.0.0.0/8 or fd00::/8.',
    }
  }
  const family = version === 4 ? ipaddr.IPv4 : ipaddr.IPv6
  return { value: `${family.networkAddressFromCIDR(`${address}/${length}`).toString()}/${length}` }
}

/** Checks a host name (RFC 1123 §2.1). A last label of digits only is rejected as a mistyped IP address. */
export function isHostName(text: string): boolean {
  if (text.length > 253) return false
  const labels = text.split('.')
  return (
    labels.every((label) => /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/i.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? '')
  )
}

/** Parses each distinct part of a comma-separated list; returns the first problem. */
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
