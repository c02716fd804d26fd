import { setTimeout as sleep } from 'node:timers/promises'
import { base64url, calculateJwkThumbprint, exportJWK, FlattenedSign } from 'jose'
import { secondMs } from '../shared/durations.ts'
import { isRecord, parseJson } from '../shared/json.ts'
import { createRequest } from './csr.ts'
import { explainCode } from '../shared/error-cause.ts'

/** A refusal of the certificate authority, in its own words, or that it cannot be reached. */
export class AcmeError extends Error {
  override readonly name = 'AcmeError'
  /** Type of the problem, such as `badNonce` (RFC 8555 §6.7). */
  readonly type: string | undefined
  /** When the authority wants to be asked again, from now on; 0 if it does not say. */
  readonly retryAfterMs: number

  constructor(
    message: string,
    options: { type?: string | undefined; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.type = options.type
    this.retryAfterMs = options.retryAfterMs ?? 0
  }
}

type AcmeNeeds = {
  directoryUrl: string
  /** Root certificate of the directory in PEM; null: the public ones. */
  directoryCa: string | null
  version: string
  signal: AbortSignal
}

/** When a certificate should be renewed (RFC 9773), and when to ask again. */
export type RenewalWindow = { start: number; end: number; retryAfterMs: number }

/** Nonces are refused in normal operation, when they are old. */
const triesMax = 5
const requestMs = 30 * secondMs
const pollMs = 500
const pollsMax = 120

/**
 * Opens a directory of a certificate authority (ACME, RFC 8555).
 *
 * @param account signs the requests: ECDSA with P-256
 * @throws AcmeError the directory cannot be read; all functions also throw it when the authority refuses
 */
export async function openAcme(
  account: CryptoKeyPair,
  { directoryUrl, directoryCa, version, signal }: AcmeNeeds,
) {
  const publicJwk = await exportJWK(account.publicKey)
  let accountUrl: string | undefined
  let nonce: string | null = null

  async function request(url: string, init: RequestInit = {}): Promise<Response> {
    try {
      return await fetch(url, {
        ...init,
        headers: { 'user-agent': `otpd/${version}`, ...init.headers },
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(requestMs)]),
        ...(directoryCa !== null && { tls: { ca: directoryCa } }),
      })
    } catch (error) {
      const code = isRecord(error) && typeof error.code === 'string' ? error.code : 'no answer in time'
      throw new AcmeError(`${new URL(url).host} cannot be reached (${explainCode(code)})`, { cause: error })
    }
  }

  const directory = await readJson(await request(directoryUrl))
  const endpoint = (name: string) => {
    const url = directory[name]
    if (typeof url === 'string') return url
    throw new AcmeError(`${directoryUrl} is not an ACME directory: it has no ${name}`)
  }

  /** Posts a signed request (RFC 8555 §6.2). Without a payload it reads (POST-as-GET). */
  async function post(url: string, payload?: object, tries = triesMax): Promise<Response> {
    nonce ??= (await request(endpoint('newNonce'), { method: 'HEAD' })).headers.get('replay-nonce')
    const identity = accountUrl === undefined ? { jwk: publicJwk } : { kid: accountUrl }
    const signed = await new FlattenedSign(
      new TextEncoder().encode(payload === undefined ? '' : JSON.stringify(payload)),
    )
      .setProtectedHeader({ alg: 'ES256', url, nonce: nonce ?? '', ...identity })
      .sign(account.privateKey)
    const response = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/jose+json' },
      body: JSON.stringify(signed),
    })
    nonce = response.headers.get('replay-nonce')
    if (response.ok) return response
    const error = await readProblem(response)
    if (error.type === 'badNonce' && tries > 1) return post(url, payload, tries - 1)
    throw error
  }
  const read = async (url: string) => readJson(await post(url))

  async function waitUntilValid(url: string): Promise<Record<string, unknown>> {
    for (let polls = 0; polls < pollsMax; polls++) {
      const resource = await read(url)
      if (resource['status'] === 'valid') return resource
      if (resource['status'] === 'invalid')
        throw new AcmeError(findProblem(resource) ?? 'it refused without a reason')
      await sleep(pollMs, undefined, { signal })
    }
    throw new AcmeError('it did not decide in time')
  }

  async function authorize(url: string, answer: AnswerChallenge): Promise<void> {
    const authorization = await read(url)
    if (authorization['status'] === 'valid') return
    const challenge = listRecords(authorization['challenges']).find(({ type }) => type === 'http-01')
    if (!challenge) throw new AcmeError('it offers no HTTP-01 challenge')
    const token = readText(challenge, 'token')
    const withdraw = answer(token, `${token}.${await calculateJwkThumbprint(publicJwk)}`)
    try {
      await post(readText(challenge, 'url'), {})
      await waitUntilValid(url)
    } finally {
      withdraw()
    }
  }

  return {
    /** Creates the account, or finds the one of this key. */
    async register(email: string | null): Promise<void> {
      const contact = email === null ? {} : { contact: [`mailto:${email}`] }
      const { headers } = await post(endpoint('newAccount'), { termsOfServiceAgreed: true, ...contact })
      accountUrl = headers.get('location') ?? undefined
    },

    /**
     * Obtains a certificate for all names.
     *
     * @param order.replaces id of the certificate that it replaces, see `certificateId`
     * @returns the chain in PEM
     */
    async obtain(order: {
      names: readonly string[]
      key: CryptoKeyPair
      answer: AnswerChallenge
      replaces?: string | undefined
    }): Promise<string> {
      const identifiers = order.names.map((value) => ({ type: 'dns', value }))
      const canReplace = order.replaces !== undefined && 'renewalInfo' in directory
      const create = (fields: object) => post(endpoint('newOrder'), { identifiers, ...fields })
      const created = canReplace
        ? await create({ replaces: order.replaces }).catch((error: unknown) => {
            // It only makes a renewal cheaper, and is refused for the certificate of a lost account.
            if (error instanceof AcmeError && error.type !== 'rateLimited') return create({})
            throw error
          })
        : await create({})
      const orderUrl = created.headers.get('location')
      if (orderUrl === null) throw new AcmeError('its answer has no location')
      const { authorizations, finalize } = await readJson(created)
      for (const url of Array.isArray(authorizations) ? authorizations : [])
        await authorize(String(url), order.answer)
      await post(String(finalize), { csr: base64url.encode(await createRequest(order.names, order.key)) })
      const done = await waitUntilValid(orderUrl)
      return (await post(readText(done, 'certificate'))).text()
    },

    /** Asks when a certificate should be renewed; undefined if the authority does not say. */
    async renewalWindow(id: string): Promise<RenewalWindow | undefined> {
      const url = directory['renewalInfo']
      if (typeof url !== 'string') return undefined
      const response = await request(`${url}/${id}`)
      const { suggestedWindow } = await readJson(response)
      if (!isRecord(suggestedWindow)) return undefined
      const [start, end] = [suggestedWindow.start, suggestedWindow.end].map((time) =>
        Date.parse(String(time)),
      )
      if (start === undefined || end === undefined || !(start <= end)) return undefined
      return { start, end, retryAfterMs: readRetryAfterMs(response) }
    },
  }
}

/** Makes `/.well-known/acme-challenge/TOKEN` answer with the text. @returns what takes it back */
export type AnswerChallenge = (token: string, text: string) => () => void

function readText(resource: Record<string, unknown>, name: string): string {
  const value = resource[name]
  if (typeof value === 'string') return value
  throw new AcmeError(`its answer has no ${name}`)
}

const listRecords = (value: unknown) => (Array.isArray(value) ? value.filter(isRecord) : [])

async function readJson(response: Response): Promise<Record<string, unknown>> {
  if (!response.ok) throw await readProblem(response)
  const json = parseJson(await response.text())
  if (isRecord(json)) return json
  throw new AcmeError(`${response.url} did not answer with JSON`)
}

async function readProblem(response: Response): Promise<AcmeError> {
  const problem = parseJson(await response.text())
  const type = isRecord(problem) && typeof problem['type'] === 'string' ? problem['type'] : undefined
  return new AcmeError(describeProblem(problem) ?? `HTTP ${response.status}`, {
    type: type?.split(':').at(-1),
    retryAfterMs: readRetryAfterMs(response),
  })
}

/** Finds why an order or an authorization became invalid. */
function findProblem(resource: Record<string, unknown>): string | undefined {
  const errors = [resource, ...listRecords(resource['challenges'])].map(({ error }) => error)
  return errors.map(describeProblem).find((text) => text !== undefined)
}

/** Formats a problem document (RFC 9457) with those of its names. */
function describeProblem(problem: unknown): string | undefined {
  if (!isRecord(problem)) return undefined
  const details = [problem, ...listRecords(problem['subproblems'])].map(({ detail }) => detail)
  const text = details.filter((detail) => typeof detail === 'string').join('; ')
  const type = typeof problem['type'] === 'string' ? problem['type'].split(':').at(-1) : undefined
  return [type, text].filter((part) => part !== undefined && part !== '').join(': ') || undefined
}

/** Reads `Retry-After`, seconds or a date; 0 without it. */
function readRetryAfterMs({ headers }: Response): number {
  const value = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(value) ? Number(value) * secondMs : Date.parse(value) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : 0
}
