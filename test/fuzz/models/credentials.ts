import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { readRefusal, type PresentedCredentials } from '../../../src/domain/apps/authentication.ts'
import { hashCredential, previewCredential } from '../../../src/domain/apps/credentials.ts'
import type { CallingApplication } from '../../../src/domain/model/application.ts'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { unwrap } from '../../../src/domain/model/rejected.ts'
import type { Rows } from '../../../src/domain/store/operation.ts'
import { readRows } from '../../helpers/read-rows.ts'
import { createTestService } from '../../helpers/service.ts'
import { createContent, defineBodyModel } from './bodies.ts'
import type { Process } from './processes.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'

type Status = 'active' | 'disabled'

type Call =
  | { kind: 'rotate'; app: number; type: 'secret' | 'api' }
  | { kind: 'set application'; app: number; status: Status }
  | { kind: 'set account'; status: Status }
  | { kind: 'set endpoint'; app: number; getsAll: boolean }
  | { kind: 'delete' | 'authenticate' | 'read subscribers'; app: number }
  | { kind: 'check caller'; nth: number }

const app = fc.nat(1)
const status = fc.constantFrom<Status>('active', 'active', 'disabled')

const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('rotate' as const),
      app,
      type: fc.constantFrom('secret', 'api'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('set application' as const), app, status }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('set account' as const), status }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('set endpoint' as const),
      app,
      getsAll: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constantFrom('authenticate', 'authenticate', 'read subscribers'), app }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('check caller' as const), nth: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), app }) },
)

type App = {
  id: string
  endpointId: string
  /** The newest credentials, and those before. */
  credentials: PresentedCredentials[]
  status: Status
  isDeleted: boolean
  getsAll: boolean
}
type State = { developerId: string; account: Status; apps: App[] }

/** Answer of a call: the refusal of a caller, or the endpoints that get an event. */
type Found = { caller?: CallingApplication; answer: unknown }

/** Applications that a process has authenticated. */
const callersByProcess = new WeakMap<Process, CallingApplication[]>()

async function authenticate(process: Process, presented: PresentedCredentials | undefined): Promise<unknown> {
  if (!presented) throw new Error('no credentials')
  try {
    const caller = await process.appAuth.authenticate(presented)
    // Its call joins a later batch than the one that runs.
    setImmediate(() =>
      callersByProcess.set(process, [...(callersByProcess.get(process) ?? []), caller].slice(-20)),
    )
    return caller.id
  } catch (error) {
    return toRefusal(error)
  }
}

function toRefusal(error: unknown) {
  if (!(error instanceof ServiceError)) throw error
  return error.reason ?? error.code
}

/** Credentials whose digits are those of a number. */
const toCredential = (type: 'secret' | 'api', number: number) =>
  `ph_live_${type}_${number.toString(16).padStart(48, '0')}`

/** The version of the credentials: how often they were rotated, from 1. */
const version = ({ credentials }: App) => credentials.length

function expectedRefusal(
  state: State,
  { id, credentialsVersion }: { id: string; credentialsVersion: number },
) {
  const own = state.apps.find((one) => one.id === id)
  if (!own || own.isDeleted || version(own) !== credentialsVersion) return 'stale'
  if (own.status !== 'active') return 'disabled'
  return state.account === 'active' ? 'ok' : 'not_allowed'
}

const answers = {
  stale: 'UNAUTHENTICATED',
  disabled: 'APPLICATION_DISABLED',
  not_allowed: 'ACCOUNT_NOT_ALLOWED',
  ok: undefined,
} as const

const readSubscribers = (
  rows: Pick<Rows, 'subscribers' | 'subscribersOfDeveloper'>,
  developerId: string,
  appId: string,
) =>
  [rows.subscribers(appId), rows.subscribersOfDeveloper(developerId)].map((list) =>
    list.map(({ id, events }) => `${id} ${events.join()}`),
  )

const expectedSubscribers = ({ apps }: State, appId: string) => {
  const existing = apps.filter(({ isDeleted }) => !isDeleted)
  const describe = (list: App[]) =>
    list.map(({ endpointId, getsAll }) => `${endpointId} ${getsAll ? '*' : 'otp.sent'}`).toSorted()
  return [describe(existing.filter(({ id }) => id === appId)), describe(existing)]
}

async function openContent(): Promise<{ content: Uint8Array; state: State }> {
  const apps: App[] = []
  let developerId = ''
  const content = await createContent(async ({ database }) => {
    const service = await createTestService({ database, plans: unlimitedPlans })
    const owner = await service.createDeveloper()
    developerId = owner.developer.id
    for (let n = 0; n < 2; n++) {
      const { id, clientId, clientSecret, apiKey } = await service.createApplication(owner)
      const body = { appId: id, url: 'https://example.com/', events: ['*'] }
      const endpoint = await service.request<{ id: string }>('POST', '/v1/webhooks', { as: owner, body })
      apps.push({
        id,
        endpointId: endpoint.data.id,
        credentials: [{ clientId, clientSecret, apiKey }],
        status: 'active',
        isDeleted: false,
        getsAll: true,
      })
    }
  })
  return { content, state: { developerId, account: 'active', apps } }
}

export const credentialModel = defineBodyModel<Call, State, Found>({
  name: 'who is admitted, and who gets an event, is what the rows say',
  shortRuns: 40,
  call,
  open: openContent,

  async perform(tx, call, { number, process, state }) {
    const { developerId, apps } = state
    const own = apps['app' in call ? call.app : 0]
    if (!own) throw new Error('no application')
    switch (call.kind) {
      case 'rotate': {
        const value = toCredential(call.type, number)
        const hashed = hashCredential(value, (bytes) => crypto.getRandomValues(bytes))
        const fresh = { type: call.type, preview: previewCredential(value), ...hashed }
        return { answer: await tx.applications.rotate(developerId, own.id, fresh, 1) }
      }
      case 'set application':
        return {
          answer: (await tx.applications.update(developerId, own.id, { status: call.status }, 1))?.status,
        }
      case 'set account':
        return { answer: (await tx.developers.update(developerId, { status: call.status }, 1))?.status }
      case 'set endpoint':
        await tx.webhookEndpoints.update(
          developerId,
          own.endpointId,
          { events: call.getsAll ? ['*'] : ['otp.sent'] },
          1,
        )
        return { answer: undefined }
      case 'delete':
        return { answer: await tx.applications.delete(developerId, own.id) }
      case 'authenticate':
        // Reads what is committed, in the midst of what is not.
        await authenticate(process, own.credentials.at(-1))
        return { answer: undefined }
      case 'read subscribers':
      case 'check caller':
        throw new Error('an operation')
    }
  },

  operations: {
    has: ({ kind }) => kind === 'read subscribers' || kind === 'check caller',
    read(rows, call, { process, state }) {
      if (call.kind !== 'check caller') {
        const own = 'app' in call ? state.apps[call.app] : undefined
        return { answer: readSubscribers(rows, state.developerId, own?.id ?? '') }
      }
      const callers = callersByProcess.get(process) ?? []
      const caller = callers[call.nth % callers.length]
      return caller ? { caller, answer: rows.credentialState(caller) } : { answer: undefined }
    },
  },

  apply(state, call, number, { caller }) {
    const own = state.apps['app' in call ? call.app : 0]
    if (!own) throw new Error('no application')
    switch (call.kind) {
      case 'rotate': {
        if (own.isDeleted) return { answer: false }
        const name = call.type === 'api' ? 'apiKey' : 'clientSecret'
        const current = own.credentials.at(-1)
        if (current) own.credentials.push({ ...current, [name]: toCredential(call.type, number) })
        return { answer: true }
      }
      case 'set application':
        if (own.isDeleted) return { answer: undefined }
        own.status = call.status
        return { answer: call.status }
      case 'set account':
        state.account = call.status
        return { answer: call.status }
      case 'set endpoint':
        own.getsAll = call.getsAll
        return { answer: undefined }
      case 'delete': {
        const answer = !own.isDeleted
        own.isDeleted = true
        return { answer }
      }
      case 'read subscribers':
        return { answer: expectedSubscribers(state, own.id) }
      case 'authenticate':
        return { answer: undefined }
      case 'check caller':
        return caller ? { caller, answer: expectedRefusal(state, caller) } : { answer: undefined }
    }
  },

  async check(process, state, pick = 0) {
    const { store } = process
    /** Either of the two may be the first that looks for commits of other processes. */
    async function checkSubscribers(own: App) {
      const subscribers = await readRows(store, {}, (rows) =>
        readSubscribers(rows, state.developerId, own.id),
      )
      expect(subscribers).toEqual(expectedSubscribers(state, own.id))
    }
    for (const own of state.apps) {
      if (pick % 2 === 0) await checkSubscribers(own)
      const expected = answers[expectedRefusal(state, { id: own.id, credentialsVersion: version(own) })]
      expect(await authenticate(process, own.credentials.at(-1))).toEqual(expected ?? own.id)
      const [earlier] = own.credentials.slice(-2, -1)
      if (earlier) expect(await authenticate(process, earlier)).toEqual(answers.stale)
      if (pick % 2 === 1) await checkSubscribers(own)
    }
    const callers = callersByProcess.get(process) ?? []
    const caller = callers[pick % callers.length]
    if (!caller) return
    const refusal = readRows(store, {}, (rows) => readRefusal(rows, caller)).then(unwrap)
    expect(await refusal.then(() => undefined, toRefusal)).toEqual(answers[expectedRefusal(state, caller)])
  },
})
