import { createHmac, createPublicKey } from 'node:crypto'
import { exportSPKI } from 'jose'
import { makeSigningKey, type startFakeOidcProvider } from '../helpers/oidc.ts'

export type Forgery = { name: string; token: string }

const base64url = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** Creates tokens that no verifier may accept. Each has one fault. The provider's keys and claims are known. */
export async function makeForgeries(
  provider: Awaited<ReturnType<typeof startFakeOidcProvider>>,
  nowMs: number,
): Promise<Forgery[]> {
  const now = Math.floor(nowMs / 1000)
  const { key, issuer, audience } = provider
  const otherKey = await makeSigningKey('RS256', 'k1')
  const ecKey = await makeSigningKey('ES256', 'k1')
  const good = { iss: issuer, aud: audience, sub: 'user-1', iat: now, exp: now + 3600 }

  async function signToken(claims: unknown, header: unknown = {}, signer = key): Promise<string> {
    const protectedHeader = {
      alg: signer.alg,
      kid: signer.kid,
      ...(typeof header === 'object' ? header : {}),
    }
    const text = `${base64url(protectedHeader)}.${base64url(claims)}`
    const algorithm =
      signer.alg === 'ES256' ? { name: 'ECDSA', hash: 'SHA-256' } : { name: 'RSASSA-PKCS1-v1_5' }
    const signature = await crypto.subtle.sign(algorithm, signer.privateKey, Buffer.from(text))
    return `${text}.${Buffer.from(signature).toString('base64url')}`
  }
  const token = await signToken(good)
  const [header = '', payload = '', signature = ''] = token.split('.')
  const pem = await exportSPKI(key.publicKey)
  const der = createPublicKey(pem).export({ type: 'spki', format: 'der' })
  const signHmac = (alg: 'HS256' | 'HS384' | 'HS512', secret: string | Buffer) => {
    const text = `${base64url({ alg, kid: key.kid })}.${payload}`
    return `${text}.${createHmac(alg.replace('HS', 'sha'), secret).update(text).digest('base64url')}`
  }

  const claims: Array<[string, Record<string, unknown>]> = [
    ['a foreign issuer', { iss: 'https://elsewhere.example' }],
    ['the issuer with an extra slash', { iss: `${issuer}/` }],
    ['the issuer in capitals', { iss: issuer.toUpperCase() }],
    ['a list of issuers', { iss: [issuer] }],
    ['no issuer', { iss: undefined }],
    ['a foreign audience', { aud: 'client-9' }],
    ['the audience with an extra space', { aud: `${audience} ` }],
    ['an empty list of audiences', { aud: [] }],
    ['no audience', { aud: undefined }],
    ['several audiences without an authorized party', { aud: [audience, 'client-9'] }],
    ['a foreign authorized party', { azp: 'client-9' }],
    ['an authorized party that is not a string', { azp: [audience] }],
    ['an empty subject', { sub: '' }],
    ['a subject that is a number', { sub: 5 }],
    ['a subject that is a list', { sub: ['user-1'] }],
    ['no subject', { sub: undefined }],
    ['a subject of 256 characters', { sub: 'x'.repeat(256) }],
    ['an expiry in ten years', { exp: now + 3650 * 86_400 }],
    ['an expiry a second beyond a day', { exp: now + 86_401 }],
    ['a time of issue of 1970', { iat: 0 }],
    ['an expiry an hour ago', { exp: now - 3600 }],
    ['an expiry of 1970', { exp: 0 }],
    ['a negative expiry', { exp: -1 }],
    ['an expiry that is text', { exp: String(now + 99) }],
    ['an expiry that is null', { exp: null }],
    ['no expiry', { exp: undefined }],
    ['no time of issue', { iat: undefined }],
    ['a time of issue that is text', { iat: String(now) }],
    ['a time of issue in an hour', { iat: now + 3600 }],
    ['a start in an hour', { nbf: now + 3600 }],
    ['a start that is text', { nbf: 'now' }],
    ['the events of a logout', { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }],
  ]
  const headers: Array<[string, Record<string, unknown>]> = [
    ['the type of an access token', { typ: 'at+jwt' }],
    ['the type of an access token as a media type', { typ: 'application/AT+JWT' }],
    ['the type of a logout token', { typ: 'logout+jwt' }],
    ['an unknown kid', { kid: 'k9' }],
    ['a kid that is a path', { kid: '../../dev/null' }],
    ['a kid that is SQL', { kid: "k1' OR '1'='1" }],
    ['an unknown critical header', { crit: ['x'], x: 1 }],
    ['an empty list of critical headers', { crit: [] }],
    ['a payload that is not encoded', { b64: false, crit: ['b64'] }],
    ['an algorithm other than that of the signature', { alg: 'PS256' }],
    ['an algorithm that is not on the list', { alg: 'RS512' }],
    ['an algorithm in lower case', { alg: 'rs256' }],
    ['an algorithm that is a list', { alg: ['RS256'] }],
    ['no algorithm at all', { alg: undefined }],
  ]
  const cases: Array<[string, string | Promise<string>]> = [
    ...claims.map(([name, change]): [string, Promise<string>] => [name, signToken({ ...good, ...change })]),
    ...headers.map(([name, change]): [string, Promise<string>] => [name, signToken(good, change)]),
    ['claims that are a list', signToken([good])],
    ['claims that are null', signToken(null)],
    ['claims that are text', signToken('user-1')],
    ['another key under the same kid', signToken(good, {}, otherKey)],
    ['a key of another kind under the same kid', signToken(good, {}, ecKey)],
    ['a key of its own embedded', signToken(good, { jwk: otherKey.publicJwk }, otherKey)],
    [
      'a key of its own embedded, without kid',
      signToken(good, { jwk: otherKey.publicJwk, kid: undefined }, otherKey),
    ],
    ['a URL of keys', signToken(good, { jku: `${issuer}/elsewhere`, kid: 'k9' }, otherKey)],
    ['a certificate of its own', signToken(good, { x5c: [der.toString('base64')] }, otherKey)],
    ['a URL of certificates', signToken(good, { x5u: `${issuer}/elsewhere` }, otherKey)],
    ...['none', 'None', 'NONE', 'nOnE', ''].flatMap((alg): Array<[string, string]> => [
      [`the algorithm "${alg}" without a signature`, `${base64url({ alg, kid: key.kid })}.${payload}.`],
      [`the algorithm "${alg}" with one`, `${base64url({ alg, kid: key.kid })}.${payload}.${signature}`],
    ]),
    ['HS256 with the public key as PEM', signHmac('HS256', pem)],
    ['HS256 with the public key as PEM without its last line break', signHmac('HS256', pem.trimEnd())],
    ['HS384 with the public key as PEM', signHmac('HS384', pem)],
    ['HS512 with the public key as PEM', signHmac('HS512', pem)],
    ['HS256 with the public key as DER', signHmac('HS256', der)],
    ['HS256 with the modulus', signHmac('HS256', Buffer.from(key.publicJwk.n ?? '', 'base64url'))],
    ['HS256 with nothing', signHmac('HS256', '')],
    ['other claims under its signature', `${header}.${base64url({ ...good, sub: 'root' })}.${signature}`],
    ['a signature of zeros', `${header}.${payload}.${Buffer.alloc(256).toString('base64url')}`],
    ['half a signature', `${header}.${payload}.${signature.slice(0, 170)}`],
    ['no signature', `${header}.${payload}.`],
    ['two parts', `${header}.${payload}`],
    ['four parts', `${token}.x`],
    ['padding after the signature', `${token}=`],
    ['padding after the claims', `${header}.${payload}=.${signature}`],
    ['a tab in the signature', `${header}.${payload}.${signature.slice(0, 9)}\t${signature.slice(9)}`],
    ['a space in the claims', `${header}.${payload.slice(0, 9)} ${payload.slice(9)}.${signature}`],
    ['a character that is not base64url', `${header}.${payload}.${signature}!`],
    ['bits after the last byte of the signature', `${header}.${payload}.${changeLastBit(signature)}`],
    ['five parts, as an encrypted token has', `${header}.${payload}.${signature}.${signature}.${signature}`],
    ['an empty header', `.${payload}.${signature}`],
    ['a header that is not an object', `${base64url('1')}.${payload}.${signature}`],
    ['no claims', `${header}..${signature}`],
    ['a JSON serialisation', JSON.stringify({ payload, signatures: [{ protected: header, signature }] })],
    ['more than 8 KiB', signToken({ ...good, padding: 'x'.repeat(8192) })],
    ['nothing but dots', '..'],
    ['no token', 'x'],
  ]
  return Promise.all(cases.map(async ([name, created]) => ({ name, token: await created })))
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Changes the last bit of base64url text: one of those after the last byte, unless the length is a multiple of three. */
const changeLastBit = (text: string) =>
  text.slice(0, -1) + (alphabet[alphabet.indexOf(text.slice(-1)) ^ 1] ?? '')
