import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { calculateJwkThumbprint, flattenedVerify, importJWK, type FlattenedJWS, type JWK } from 'jose'
import { makeCertificate } from './webhook-receiver.ts'

type Problem = { type: string; detail: string; status?: number; headers?: Record<string, string> }
type Order = {
  names: string[]
  state: 'pending' | 'valid' | 'invalid'
  certificate?: string
  problem?: Problem
}

export type AcmeServer = ReturnType<typeof startAcmeServer>

/**
 * Starts a small certificate authority that speaks ACME (RFC 8555), with the faults that a test asks for. It checks every
 * signature and nonce, and issues real certificates with openssl.
 *
 * @param lookUp answers a challenge, as port 80 of the name would
 */
export function startAcmeServer(lookUp: (token: string) => string | undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-acme-'))
  const root = makeCertificate('authority.test')
  writeFileSync(join(folder, 'ca.pem'), root.cert)
  writeFileSync(join(folder, 'ca-key.pem'), root.key)
  writeFileSync(join(folder, 'extensions'), 'authorityKeyIdentifier = keyid\n')
  const nonces = new Set<string>()
  const accounts: JWK[] = []
  const orders: Order[] = []
  const requests: { path: string; payload: Record<string, unknown> }[] = []
  const problems: Record<string, Problem[]> = {}
  let renewalInfo: { start: string; end: string } | undefined

  const reply = (body: unknown, headers: Record<string, string> = {}, status = 200) => {
    const nonce = crypto.randomUUID()
    nonces.add(nonce)
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return new Response(text, { status, headers: { 'replay-nonce': nonce, ...headers } })
  }
  const refuse = ({ type, detail, status = 400, headers }: Problem) =>
    reply({ type: `urn:ietf:params:acme:error:${type}`, detail }, headers, status)

  async function verify(request: Request): Promise<{ payload: string; key: JWK } | Problem> {
    // The server under test sent it.
    const jws = (await request.json()) as FlattenedJWS
    const header = JSON.parse(Buffer.from(jws.protected ?? '', 'base64url').toString())
    if (!nonces.delete(header.nonce)) return { type: 'badNonce', detail: 'unknown nonce' }
    if (header.url !== request.url) return { type: 'unauthorized', detail: 'the signed URL is another one' }
    const key: JWK | undefined = header.jwk ?? accounts[Number(String(header.kid).split('/').at(-1))]
    if (!key) return { type: 'accountDoesNotExist', detail: 'no such account' }
    const { payload } = await flattenedVerify(jws, await importJWK(key, 'ES256'))
    return { payload: new TextDecoder().decode(payload), key }
  }

  function issue(csr: string): string | Problem {
    writeFileSync(join(folder, 'csr.der'), Buffer.from(csr, 'base64url'))
    const args =
      'x509 -req -inform DER -in csr.der -CA ca.pem -CAkey ca-key.pem -days 90 -copy_extensions copyall -extfile extensions'
    const result = Bun.spawnSync(['openssl', ...args.split(' ')], { cwd: folder })
    return result.success
      ? result.stdout.toString() + readFileSync(join(folder, 'ca.pem'), 'utf8')
      : { type: 'badCSR', detail: result.stderr.toString() }
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { origin, pathname } = new URL(request.url)
      const [, resource = '', number = ''] = pathname.split('/')
      const scripted = problems[resource]?.shift()
      if (resource === 'directory') {
        if (scripted) return refuse(scripted)
        const url = (name: string) => `${origin}/${name}`
        return reply({
          newNonce: url('nonce'),
          newAccount: url('account'),
          newOrder: url('order'),
          ...(renewalInfo && { renewalInfo: url('renewal') }),
        })
      }
      if (resource === 'nonce') return reply('')
      if (resource === 'renewal') return reply({ suggestedWindow: renewalInfo }, { 'retry-after': '3600' })
      const verified = await verify(request)
      if ('type' in verified) return refuse(verified)
      const payload = verified.payload === '' ? {} : JSON.parse(verified.payload)
      requests.push({ path: pathname, payload })
      if (scripted) return refuse(scripted)
      const order = number === '' ? undefined : orders[Number(number)]
      const present = () => ({
        status: order?.state,
        authorizations: [`${origin}/authorization/${number}`],
        finalize: `${origin}/finalize/${number}`,
        certificate: `${origin}/certificate/${number}`,
      })
      switch (resource) {
        case 'account': {
          const known = accounts.findIndex(({ x }) => x === verified.key.x)
          if (known === -1) accounts.push(verified.key)
          return reply(
            {},
            { location: `${origin}/account/${known === -1 ? accounts.length - 1 : known}` },
            201,
          )
        }
        case 'order': {
          if (order) return reply(present())
          const names = payload.identifiers.map(({ value }: { value: string }) => value)
          orders.push({ names, state: 'pending' })
          const location = `${origin}/order/${orders.length - 1}`
          const links = {
            authorizations: [`${origin}/authorization/${orders.length - 1}`],
            finalize: `${origin}/finalize/${orders.length - 1}`,
          }
          return reply({ status: 'pending', ...links }, { location }, 201)
        }
        case 'authorization': {
          const error = order?.problem && {
            error: { type: order.problem.type, detail: order.problem.detail },
          }
          const challenge = {
            type: 'http-01',
            url: `${origin}/challenge/${number}`,
            token: `token-${number}`,
            ...error,
          }
          return reply({ status: order?.state, identifier: {}, challenges: [challenge] })
        }
        case 'challenge': {
          const expected = `token-${number}.${await calculateJwkThumbprint(verified.key)}`
          const isRight = lookUp(`token-${number}`) === expected
          if (order) order.state = isRight ? 'valid' : 'invalid'
          if (order && !isRight)
            order.problem = { type: 'unauthorized', detail: 'the key authorization does not match' }
          return reply({})
        }
        case 'finalize': {
          const issued = issue(payload.csr)
          if (typeof issued !== 'string') return refuse(issued)
          if (order) order.certificate = issued
          return reply(present())
        }
        case 'certificate':
          return reply(order?.certificate ?? '')
        default:
          return refuse({ type: 'malformed', detail: `no resource ${resource}`, status: 404 })
      }
    },
  })
  return {
    directoryUrl: `http://127.0.0.1:${server.port}/directory`,
    root: root.cert,
    accounts,
    orders,
    requests,
    /** Refuses the next request for a resource: `directory`, `account`, `order`, `finalize` and so on. */
    refuseNext: (resource: string, problem: Problem) => void (problems[resource] ??= []).push(problem),
    /** Offers renewal information (RFC 9773). */
    setRenewalInfo: (window: { start: string; end: string }) => void (renewalInfo = window),
    async stop() {
      await server.stop(true)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
