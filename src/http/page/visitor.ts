import { hmac, timingSafeEqualBytes } from '../../shared/hmac.ts'
import type { Keys } from '../../domain/model/keys.ts'
import type { Random } from '../../domain/model/random.ts'

const cookieName = 'otpd_page'
const cookieSeconds = 365 * 24 * 3600
/** 128 bits. */
const idBytes = 16

type PageKeys = Pick<Keys, 'page'>

/** A browser that has the page open: it keeps a random id in a signed cookie, which names its device to the guard. */
export type Visitor = { deviceId: string; cookie: string }

const sign = (keys: PageKeys, ...parts: readonly string[]) =>
  hmac(keys.page).update(parts.join('\n')).digest('base64url')

const isEqual = (a: string, b: string) => timingSafeEqualBytes(Buffer.from(a), Buffer.from(b))

/** Reads the cookie of a browser. @returns undefined without one, or for one that was not made here */
export function readVisitor(keys: PageKeys, header: string | null): Visitor | undefined {
  for (const pair of (header ?? '').split(';')) {
    const [name = '', value = ''] = pair.trim().split('=')
    const [deviceId = '', signature = ''] = value.split('.')
    if (name === cookieName && isEqual(signature, sign(keys, 'device', deviceId)))
      return { deviceId, cookie: value }
  }
  return undefined
}

/** Makes a cookie for a browser without one. */
export function createVisitor(keys: PageKeys, random: Random): Visitor {
  const bytes = new Uint8Array(idBytes)
  random(bytes)
  const deviceId = Buffer.from(bytes).toString('base64url')
  return { deviceId, cookie: `${deviceId}.${sign(keys, 'device', deviceId)}` }
}

/**
 * Writes `Set-Cookie`. Only the page gets it back, and never with the request of another site's form. Without `Path` that is the
 * folder of the page as the browser sees it (RFC 6265 §5.1.4), also below a path of a proxy.
 */
export const visitorCookie = ({ cookie }: Visitor, isHttps: boolean): string =>
  `${cookieName}=${cookie}; Max-Age=${cookieSeconds}; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`

/**
 * Makes the token of a form (signed double-submit cookie, OWASP): another site can neither read it nor make it, because it
 * belongs to this browser and this session.
 */
export const formToken = (keys: PageKeys, { deviceId }: Visitor, sessionId: string): string =>
  sign(keys, 'form', deviceId, sessionId)

/** Checks the token of a form. */
export const isFormToken = (keys: PageKeys, visitor: Visitor, sessionId: string, token: string): boolean =>
  isEqual(token, formToken(keys, visitor, sessionId))

/**
 * Tells whether a form was posted by a page of this server: by `Sec-Fetch-Site`, or in older browsers and without HTTPS by the
 * host of `Origin`. That is the one of the request, or the public one if a proxy has replaced it.
 */
export function isOwnPost(headers: Headers, publicUrl: string): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const host = URL.parse(headers.get('origin') ?? '')?.host
  return host !== undefined && [headers.get('host'), new URL(publicUrl).host].includes(host)
}
