const octet = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`

/**
 * Pattern of a loopback host as a URL contains it: `localhost`, 127.0.0.0/8 (RFC 1122 §3.2.1.3) or `[::1]`
 * (RFC 4291 §2.5.3). For texts that are checked before their placeholders are filled; use `isLoopback` for hosts.
 */
export const loopbackHostPattern = String.raw`(?:localhost|127(?:\.${octet}){3}|\[::1\])`

const loopbackHost = new RegExp(`^(?:${loopbackHostPattern}|::1)$`, 'i')

/**
 * Tells whether only this machine can reach a host. Plain http is allowed to such hosts only.
 *
 * Strict, because other spellings depend on the resolver or the URL parser: refuses `localhost.`, `*.localhost`,
 * `127.1`, `0.0.0.0` and IPv4-mapped IPv6 addresses. `URL.hostname` has normalized the numeric ones already.
 *
 * @param host a name or an address in its usual form, IPv6 with or without brackets; without port
 */
export const isLoopback = (host: string): boolean => loopbackHost.test(host)

/**
 * Tells whether a text is the address of a program on this machine: a loopback host, with or without `http(s)://`, port
 * and path, as people write it into a setting or a flag. A text with user information is not.
 */
export function isLoopbackAddress(text: string): boolean {
  const [, host = ''] = /^(?:https?:\/\/)?(\[[^\]]*\]|[^:/?#]*)(?::\d*)?(?:[/?#]|$)/i.exec(text) ?? []
  return isLoopback(host)
}
