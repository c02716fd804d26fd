import { makeSigningKey, startFakeOidcProvider, type JwksMode, type SigningKey } from '../helpers/oidc.ts'
import { callApi, send, violationUnless, watchHealth, type CallResult } from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { residentMb } from './misbehaving-server.ts'
import { makeHome, startServerAt } from './server.ts'

const answerMsMax = 10_000
const growthMbMax = 40
/** The server refetches keys for an unknown key id at most this often, so a rotated key may wait that long. */
const rotationMsMax = 31_000
const callCount = 20

const modes: Exclude<JwksMode, 'ok'>[] = ['error', 'hang', 'endless', 'garbage', 'empty', 'redirect']

export const issuers: FaultFamily = {
  name: 'issuers',
  description: 'an identity provider that is down, hangs, never ends, or changes its keys',
  async run(trial) {
    await Promise.all([
      tryMissingProvider(trial),
      ...modes.filter((mode) => !trial.short || mode !== 'redirect').map((mode) => tryMode(trial, mode)),
      ...(trial.short ? [] : [tryRotation(trial)]),
    ])
  },
}

async function startWithIssuer(trial: Trial, name: string, issuer: string, audience: string) {
  const serverHome = makeHome(trial, name)
  // Removes the built-in account, because an identity provider is configured.
  const { OTPD_ADMIN_EMAIL: _email, OTPD_ADMIN_PASSWORD_FILE: _file, ...env } = serverHome.env
  serverHome.env = { ...env, OTPD_OIDC_ISSUER: issuer, OTPD_OIDC_AUDIENCE: audience, OTPD_SIGNUP: 'open' }
  return startServerAt(serverHome)
}

const bearerOptions = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

async function createApp(url: string, token: string) {
  const create = async (path: string, body: object) =>
    (await callApi('POST', url + path, { ...bearerOptions(token), body })).data
  const project = await create('/v1/projects', { name: 'Project' })
  const app = await create('/v1/applications', { name: 'App', projectId: project['id'], environment: 'test' })
  return {
    headers: {
      'x-client-id': String(app['clientId']),
      'x-client-secret': String(app['clientSecret']),
      'x-api-key': String(app['apiKey']),
    },
  }
}

const isUnavailable = ({ status, error, headers }: CallResult) =>
  status === 503 &&
  error['reason'] === 'IDENTITY_PROVIDER_UNAVAILABLE' &&
  Number(headers.get('retry-after')) > 0

/** Tries a misbehavior on a server that has already fetched the keys and on one that has not. */
async function tryMode(trial: Trial, mode: (typeof modes)[number]): Promise<void> {
  const provider = await startFakeOidcProvider()
  const warmServer = await startWithIssuer(trial, `known-${mode}`, provider.issuer, provider.audience)
  const coldServer = await startWithIssuer(trial, `fresh-${mode}`, provider.issuer, provider.audience)
  try {
    const token = await provider.sign(Date.now())
    const app = await createApp(warmServer.url, token)
    const memoryBefore = residentMb(coldServer.pid)
    provider.state.mode = mode
    const stopWatch = watchHealth(coldServer.url)
    const fetchProfile = (url: string) => callApi('GET', `${url}/v1/developer/me`, bearerOptions(token))
    const [warmResults, coldResults, sends] = await Promise.all([
      Promise.all(Array.from({ length: callCount }, () => fetchProfile(warmServer.url))),
      Promise.all(Array.from({ length: callCount }, () => fetchProfile(coldServer.url))),
      Promise.all(Array.from({ length: callCount }, () => send(warmServer.url, app))),
    ])
    const unknownKey = await makeSigningKey('RS256', 'unknown')
    const forged = await provider.sign(Date.now(), {}, {}, unknownKey)
    const unknownKeyResult = await callApi('GET', `${warmServer.url}/v1/developer/me`, bearerOptions(forged))
    const health = await stopWatch()
    const growthMb = residentMb(coldServer.pid) - memoryBefore
    const fetches = provider.state.jwksFetchCount
    const longestMs = Math.max(...coldResults.map(({ ms }) => ms))
    // A set without this key is a valid response: the provider does not have the key.
    const expectedColdResults = coldResults.filter((result) =>
      mode === 'empty' ? result.status === 401 || isUnavailable(result) : isUnavailable(result),
    )
    trial.report({
      scenario: `the identity provider's keys: ${mode}; ${callCount} concurrent calls to a server that has its keys and to one that has not`,
      guarantee:
        'with keys nothing changes; without, 503 with Retry-After within 10 s; applications are not affected',
      figures: {
        'with keys': summarizeStatuses(warmResults),
        without: summarizeStatuses(coldResults),
        'longest ms': longestMs,
        sends: summarizeStatuses(sends),
        'unknown key': unknownKeyResult.status,
        'asked for keys': fetches,
        'grown MB': growthMb.toFixed(1),
      },
      violations: [
        ...violationUnless(
          warmResults.every(({ status }) => status === 200),
          `with keys: ${summarizeStatuses(warmResults)}`,
        ),
        ...violationUnless(
          expectedColdResults.length === callCount,
          `without: ${summarizeStatuses(coldResults)}`,
        ),
        ...violationUnless(longestMs <= trial.allowMs(answerMsMax), `a response took ${longestMs} ms`),
        ...violationUnless(
          sends.every(({ status }) => status === 201),
          `sends: ${summarizeStatuses(sends)}`,
        ),
        ...violationUnless(
          unknownKeyResult.status === 503 || unknownKeyResult.status === 401,
          `an unknown key: ${unknownKeyResult.status}`,
        ),
        ...violationUnless(fetches <= 6, `the keys were fetched ${fetches} times`),
        ...violationUnless(health.failed === 0, `health failed ${health.failed} times`),
        ...violationUnless(growthMb < growthMbMax, `${growthMb.toFixed(1)} MB more`),
      ],
    })
  } finally {
    await Promise.all([warmServer.stop(), coldServer.stop()])
    await provider.stop()
  }
}

/** Starts the server while nothing listens at the provider's address. */
async function tryMissingProvider(trial: Trial): Promise<void> {
  const provider = await startFakeOidcProvider()
  const token = await provider.sign(Date.now())
  await provider.stop()
  const server = await startWithIssuer(trial, 'absent', provider.issuer, provider.audience)
  const responses = await Promise.all(
    Array.from({ length: callCount }, () =>
      callApi('GET', `${server.url}/v1/developer/me`, bearerOptions(token)),
    ),
  )
  const exitCode = await server.stop()
  trial.report({
    scenario: `no identity provider since before the start, ${callCount} concurrent calls`,
    guarantee: 'the server starts; 503 with Retry-After, never 401',
    figures: { answered: summarizeStatuses(responses), 'exit code': exitCode },
    violations: [
      ...violationUnless(responses.every(isUnavailable), `answered ${summarizeStatuses(responses)}`),
      ...violationUnless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
}

/** Replaces the provider's keys, as after a theft. */
async function tryRotation(trial: Trial): Promise<void> {
  const provider = await startFakeOidcProvider()
  const server = await startWithIssuer(trial, 'rotation', provider.issuer, provider.audience)
  const fetchProfile = async (key?: SigningKey) =>
    (
      await callApi(
        'GET',
        `${server.url}/v1/developer/me`,
        bearerOptions(await provider.sign(Date.now(), {}, {}, key)),
      )
    ).status
  const before = await fetchProfile()
  const next = await makeSigningKey('ES256', 'next')
  provider.state.keys = [next.publicJwk]
  const startedAt = performance.now()
  let unexpectedStatus = 0
  let isAccepted = false
  while (!isAccepted && performance.now() - startedAt < rotationMsMax) {
    const status = await fetchProfile(next)
    isAccepted = status === 200
    if (!isAccepted && status !== 401) unexpectedStatus = status
    if (!isAccepted) await Bun.sleep(250)
  }
  const tookMs = Math.round(performance.now() - startedAt)
  const old = await fetchProfile()
  const exitCode = await server.stop()
  await provider.stop()
  trial.report({
    scenario: 'the identity provider signs with a new key, and publishes it alone',
    guarantee: 'tokens of the new key are accepted within 31 s, those of the old key are refused',
    figures: {
      before,
      'taken after ms': tookMs,
      'old key': old,
      'asked for keys': provider.state.jwksFetchCount,
    },
    violations: [
      ...violationUnless(before === 200, `before: ${before}`),
      ...violationUnless(isAccepted, 'the new key was not accepted'),
      ...violationUnless(unexpectedStatus === 0, `meanwhile: ${unexpectedStatus}`),
      ...violationUnless(old === 401, `the old key: ${old}`),
      ...violationUnless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
}

const summarizeStatuses = (responses: readonly CallResult[]) => {
  const outcomes = responses.map(
    ({ status, error }) => `${status}${error['reason'] ? ` ${String(error['reason'])}` : ''}`,
  )
  const counts = new Map<string, number>()
  for (const word of outcomes) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].map(([word, count]) => `${word} × ${count}`).join(', ')
}
