import { makeSigningKey, startForgingProvider, type KeysMode, type SigningKey } from '../helpers/oidc.ts'
import { ask, send, unless, watchHealth, type Answer } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { residentMb } from './misbehaviours.ts'
import { makeHome, startAt } from './server.ts'

const answerMsMax = 10_000
const growthMbMax = 40
/** How long a key id that nobody knows may cost the provider nothing: the new key of a rotation waits for it. */
const rotationMsMax = 31_000
const askings = 20

const modes: Exclude<KeysMode, 'ok'>[] = ['error', 'hang', 'endless', 'garbage', 'empty', 'redirect']

export const issuers: Family = {
  name: 'issuers',
  about: 'an identity provider that is down, hangs, never ends, or changes its keys',
  async run(trial) {
    await Promise.all([
      tryAbsence(trial),
      ...modes.filter((mode) => !trial.short || mode !== 'redirect').map((mode) => tryMode(trial, mode)),
      ...(trial.short ? [] : [tryRotation(trial)]),
    ])
  },
}

async function startWith(trial: Trial, name: string, issuer: string, audience: string) {
  const at = makeHome(trial, name)
  // The account of the home would need a login first.
  const { OTPD_ADMIN_EMAIL: _email, OTPD_ADMIN_PASSWORD_FILE: _file, ...env } = at.env
  at.env = { ...env, OTPD_OIDC_ISSUER: issuer, OTPD_OIDC_AUDIENCE: audience, OTPD_SIGNUP: 'open' }
  return startAt(at)
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

async function makeApp(url: string, token: string) {
  const made = async (path: string, body: object) =>
    (await ask('POST', url + path, { ...bearer(token), body })).data
  const project = await made('/v1/projects', { name: 'Project' })
  const app = await made('/v1/applications', { name: 'App', projectId: project['id'], environment: 'test' })
  return {
    headers: {
      'x-client-id': String(app['clientId']),
      'x-client-secret': String(app['clientSecret']),
      'x-api-key': String(app['apiKey']),
    },
  }
}

const isUnavailable = ({ status, error, headers }: Answer) =>
  status === 503 &&
  error['reason'] === 'IDENTITY_PROVIDER_UNAVAILABLE' &&
  Number(headers.get('retry-after')) > 0

/** With keys that were loaded before, and with a server that starts meanwhile. */
async function tryMode(trial: Trial, mode: (typeof modes)[number]): Promise<void> {
  const provider = await startForgingProvider()
  const known = await startWith(trial, `known-${mode}`, provider.issuer, provider.audience)
  const fresh = await startWith(trial, `fresh-${mode}`, provider.issuer, provider.audience)
  try {
    const token = await provider.sign(Date.now())
    const app = await makeApp(known.url, token)
    const memoryBefore = residentMb(fresh.pid)
    provider.state.mode = mode
    const stopWatch = watchHealth(fresh.url)
    const me = (url: string) => ask('GET', `${url}/v1/developer/me`, bearer(token))
    const [ofKnown, ofFresh, sends] = await Promise.all([
      Promise.all(Array.from({ length: askings }, () => me(known.url))),
      Promise.all(Array.from({ length: askings }, () => me(fresh.url))),
      Promise.all(Array.from({ length: askings }, () => send(known.url, app))),
    ])
    const stranger = await makeSigningKey('RS256', 'unknown')
    const forged = await provider.sign(Date.now(), {}, {}, stranger)
    const unknown = await ask('GET', `${known.url}/v1/developer/me`, bearer(forged))
    const health = await stopWatch()
    const grownMb = residentMb(fresh.pid) - memoryBefore
    const fetches = provider.state.keysFetches
    const longestMs = Math.max(...ofFresh.map(({ ms }) => ms))
    // A set without keys, or without this one, is an answer: the provider does not know the key.
    const refusedFresh = ofFresh.filter((one) =>
      mode === 'empty' ? one.status === 401 || isUnavailable(one) : isUnavailable(one),
    )
    trial.report({
      tried: `the identity provider's keys: ${mode}; ${askings} calls at once to a server with its keys and to one without`,
      promised:
        'with keys all is as before; without, 503 with Retry-After within 10 s; applications notice nothing',
      figures: {
        'with keys': statuses(ofKnown),
        without: statuses(ofFresh),
        'longest ms': longestMs,
        sends: statuses(sends),
        'unknown key': unknown.status,
        'asked for keys': fetches,
        'grown MB': grownMb.toFixed(1),
      },
      broken: [
        ...unless(
          ofKnown.every(({ status }) => status === 200),
          `with keys: ${statuses(ofKnown)}`,
        ),
        ...unless(refusedFresh.length === askings, `without: ${statuses(ofFresh)}`),
        ...unless(longestMs <= trial.allowMs(answerMsMax), `an answer took ${longestMs} ms`),
        ...unless(
          sends.every(({ status }) => status === 201),
          `sends: ${statuses(sends)}`,
        ),
        ...unless(unknown.status === 503 || unknown.status === 401, `an unknown key: ${unknown.status}`),
        ...unless(fetches <= 6, `the provider was asked ${fetches} times`),
        ...unless(health.failed === 0, `health failed ${health.failed} times`),
        ...unless(grownMb < growthMbMax, `${grownMb.toFixed(1)} MB more`),
      ],
    })
  } finally {
    await Promise.all([known.stop(), fresh.stop()])
    await provider.stop()
  }
}

/** Nobody listens where the provider should be, from before the start on. */
async function tryAbsence(trial: Trial): Promise<void> {
  const provider = await startForgingProvider()
  const token = await provider.sign(Date.now())
  await provider.stop()
  const server = await startWith(trial, 'absent', provider.issuer, provider.audience)
  const answers = await Promise.all(
    Array.from({ length: askings }, () => ask('GET', `${server.url}/v1/developer/me`, bearer(token))),
  )
  const exitCode = await server.stop()
  trial.report({
    tried: `no identity provider from before the start on, ${askings} calls at once`,
    promised: 'the server starts; 503 with Retry-After, never 401',
    figures: { answered: statuses(answers), 'exit code': exitCode },
    broken: [
      ...unless(answers.every(isUnavailable), `answered ${statuses(answers)}`),
      ...unless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
}

/** New keys in place of the old ones, as after a theft. */
async function tryRotation(trial: Trial): Promise<void> {
  const provider = await startForgingProvider()
  const server = await startWith(trial, 'rotation', provider.issuer, provider.audience)
  const me = async (key?: SigningKey) =>
    (await ask('GET', `${server.url}/v1/developer/me`, bearer(await provider.sign(Date.now(), {}, {}, key))))
      .status
  const before = await me()
  const next = await makeSigningKey('ES256', 'next')
  provider.state.keys = [next.publicJwk]
  const startedAt = performance.now()
  let seen = 0
  let taken = false
  while (!taken && performance.now() - startedAt < rotationMsMax) {
    const status = await me(next)
    taken = status === 200
    if (!taken && status !== 401) seen = status
    if (!taken) await Bun.sleep(250)
  }
  const tookMs = Math.round(performance.now() - startedAt)
  const old = await me()
  const exitCode = await server.stop()
  await provider.stop()
  trial.report({
    tried: 'the identity provider signs with a new key, and publishes it alone',
    promised: 'tokens of the new key are taken within 31 s, those of the old one no more',
    figures: {
      before,
      'taken after ms': tookMs,
      'old key': old,
      'asked for keys': provider.state.keysFetches,
    },
    broken: [
      ...unless(before === 200, `before: ${before}`),
      ...unless(taken, 'the new key was not taken'),
      ...unless(seen === 0, `meanwhile: ${seen}`),
      ...unless(old === 401, `the old key: ${old}`),
      ...unless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
}

const statuses = (answers: readonly Answer[]) => {
  const words = answers.map(
    ({ status, error }) => `${status}${error['reason'] ? ` ${String(error['reason'])}` : ''}`,
  )
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].map(([word, count]) => `${word} × ${count}`).join(', ')
}
