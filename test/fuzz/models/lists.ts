import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { otpStatuses, type OtpRequest, type OtpStatus } from '../../../src/domain/model/request.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import type { LogType } from '../../../src/shared/event-kinds.ts'
import { logLists, requestsLists, statusLists, typeLists } from '../../../src/store/sqlite/list-numbers.ts'
import { createListSources } from '../../../src/store/list-reads.ts'
import { createPendingRequest } from '../../helpers/otp-request.ts'
import { readConnection } from '../../helpers/sealed-rows.ts'
import { registerDeletedApplications, registerShortIds } from '../../helpers/databases.ts'
import { createContent, defineBodyModel } from './bodies.ts'

const apps = [
  { developerId: 'dev_1', appId: 'app_1' },
  { developerId: 'dev_1', appId: 'app_2' },
  { developerId: 'dev_2', appId: 'app_3' },
]
const developers = [...new Set(apps.map(({ developerId }) => developerId))]
const owners = [...developers.map((developerId) => ({ developerId, appId: undefined })), ...apps]
const start = 1_800_000_000_000
const typeByStatus = { verified: 'otp.verified', canceled: 'otp.canceled', failed: 'otp.failed' } as const
const typeFilters: Array<LogType[] | undefined> = [undefined, ['otp.sent'], ['otp.verified', 'otp.failed']]
const requestFilters: Array<OtpStatus | undefined> = [undefined, ...otpStatuses]

type Call =
  | { kind: 'send'; app: number }
  /** `callsBefore`: the request is of the call so many calls before this one, if that was a send. */
  | { kind: 'close'; callsBefore: number; status: keyof typeof typeByStatus }
  | { kind: 'delete requests' | 'delete entries'; count: number }
  | { kind: 'replace phone'; seq: number }
  | { kind: 'list'; pick: number }

const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('send' as const), app: fc.nat(apps.length - 1) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('close' as const),
      callsBefore: fc.integer({ min: 1, max: 12 }),
      status: fc.constantFrom('verified', 'canceled', 'failed'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('delete requests', 'delete entries'),
      count: fc.integer({ min: 1, max: 9 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('replace phone' as const),
      seq: fc.integer({ min: 1, max: 30 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('list' as const), pick: fc.nat() }) },
)

type Owned = { developerId: string; appId: string }
type Owner = (typeof owners)[number]

/** The rows that the lists must have, oldest first. */
type State = {
  requests: Array<Owned & { id: string; status: OtpStatus }>
  entries: Array<Owned & { seq: number; type: LogType; phone: string }>
  lastSeq: number
}

/** A list with a filter: how to read a page, and what must be in the whole of it. */
type Listing = {
  owner: Owner
  /** Numbers of the application's lists; undefined without a filter. */
  filter: number[] | undefined
  kind: Parameters<typeof createListSources>[1]
  toListKey(key: string): string | number
  isAscending: boolean
  load(store: Store['read'], limit: number, last: string | undefined): Promise<Array<{ key: string }>>
  expect(state: Readonly<State>): Array<{ key: string }>
}

const isOwn =
  ({ developerId, appId }: Owner) =>
  (row: Owned) =>
    row.developerId === developerId && (appId === undefined || row.appId === appId)

const listings: Listing[] = owners.flatMap((owner) => [
  ...requestFilters.map((status): Listing => ({
    owner,
    filter: status && [statusLists[status]],
    kind: { developer: requestsLists, application: statusLists },
    toListKey: (key) => key,
    isAscending: false,
    load: async (store, limit, before) =>
      (await store.otpRequests.list({ ...owner, status, now: start, limit, before })).map((row) => ({
        key: row.id,
        status: row.status,
      })),
    expect: ({ requests }) =>
      requests
        .filter((row) => isOwn(owner)(row) && (status === undefined || row.status === status))
        .map((row) => ({ key: row.id, status: row.status }))
        .toReversed(),
  })),
  ...typeFilters.flatMap((types) =>
    [true, false].map((isAscending): Listing => ({
      owner,
      filter: types?.map((type) => typeLists[type]),
      kind: { developer: logLists, application: typeLists },
      toListKey: Number,
      isAscending,
      load: async (store, limit, last) => {
        const position = last === undefined ? (isAscending ? 0 : undefined) : Number(last)
        const entries = await store.events.list(owner.developerId, {
          appId: owner.appId,
          types,
          limit,
          ...(isAscending ? { afterSeq: position } : { beforeSeq: position }),
        })
        return entries.map(({ seq, phone }) => ({ key: String(seq), phone }))
      },
      expect({ entries }) {
        const listed = entries
          .filter((row) => isOwn(owner)(row) && (types === undefined || types.includes(row.type)))
          .map(({ seq, phone }) => ({ key: String(seq), phone }))
        return isAscending ? listed : listed.toReversed()
      },
    })),
  ),
])

const toPhone = (number: number) => `+1415555${String(number).padStart(4, '0')}`
const toId = (number: number) => `otp_${String(number).padStart(6, '0')}`
const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
const limits = [1, 2, 5, 50]

export const listModel = defineBodyModel<Call, State>({
  name: 'lists are those of the rows at every moment',
  shortRuns: 25,
  options: { listLimits: { recentMax: 6, sliceRows: 3 } },
  call,
  open: async () => ({
    content: await createContent(async ({ database }) => {
      await registerShortIds(database, 'prj', ...developers, ...apps.map(({ appId }) => appId))
      await registerDeletedApplications(database, apps)
    }),
    state: { requests: [], entries: [], lastSeq: 0 },
  }),

  async perform(tx, call, { number, process }) {
    const record = (owner: Owned, type: LogType) =>
      tx.events.append([
        {
          entry: {
            type,
            developerId: owner.developerId,
            appId: owner.appId,
            requestId: 'otp_of_entry',
            phone: toPhone(number),
            status: null,
            detail: null,
            at: start,
          },
        },
      ])
    switch (call.kind) {
      case 'send': {
        const app = apps[call.app]
        if (!app) throw new Error('no application')
        tx.otpRequests.insert([createPendingRequest(start, { ...app, projectId: 'prj', id: toId(number) })])
        return record(app, 'otp.sent')
      }
      case 'close': {
        const request = await tx.otpRequests.lock(toId(number - call.callsBefore))
        if (request?.status !== 'pending') return request?.status
        const closed: OtpRequest = {
          ...request,
          status: call.status,
          verifiedAt: call.status === 'verified' ? start : null,
          failureReason: call.status === 'failed' ? 'blocked' : null,
        }
        tx.otpRequests.update([{ request: closed }])
        return record(request, typeByStatus[call.status])
      }
      case 'delete requests':
        return tx.otpRequests.deleteOldest(start, call.count)
      case 'delete entries':
        return tx.events.deleteOldest(start, call.count)
      case 'replace phone':
        // Ends before or after the commit.
        void process.store.read.events.list('dev_1', { limit: 50 })
        return tx.retention.replaceInEvent(call.seq, `anon_${number}`, (payload) => payload)
      case 'list':
        return listings[call.pick % listings.length]?.load(tx, 5, undefined)
    }
  },

  apply(state, call, number) {
    const record = ({ developerId, appId }: Owned, type: LogType) => {
      state.lastSeq++
      state.entries.push({ developerId, appId, type, seq: state.lastSeq, phone: toPhone(number) })
      return state.lastSeq
    }
    switch (call.kind) {
      case 'send': {
        const app = apps[call.app]
        if (!app) throw new Error('no application')
        state.requests.push({ ...app, id: toId(number), status: 'pending' })
        state.requests.sort(byId)
        return record(app, 'otp.sent')
      }
      case 'close': {
        const request = state.requests.find(({ id }) => id === toId(number - call.callsBefore))
        if (request?.status !== 'pending') return request?.status
        request.status = call.status
        return record(request, typeByStatus[call.status])
      }
      case 'delete requests':
        return state.requests.splice(0, call.count).length > 0
      case 'delete entries':
        return state.entries.splice(0, call.count).length > 0
      case 'replace phone': {
        const entry = state.entries.find(({ seq }) => seq === call.seq)
        if (entry) entry.phone = `anon_${number}`
        return undefined
      }
      case 'list':
        return listings[call.pick % listings.length]?.expect(state).slice(0, 5)
    }
  },

  async check({ store, database }, state, pick) {
    const limit = limits[(pick ?? 1) % limits.length] ?? 1
    const chosen =
      pick === undefined ? listings : listings.filter((_, index) => index === pick % listings.length)
    for (const { load, expect: expected, ...index } of chosen) {
      const all: Array<{ key: string }> = []
      for (;;) {
        const page = await load(store.read, limit, all.at(-1)?.key)
        if (page.length === 0) break
        all.push(...page)
        // A move goes on between two pages.
        await new Promise(setImmediate)
      }
      expect(all).toEqual(expected(state))
      // The lists are exact, although readers would skip the keys of other rows.
      const findSources = createListSources(readConnection(database), index.kind)
      if (!findSources) throw new Error('the database has no lists')
      const sources = await findSources(index.owner, index.filter)
      const keys = database.sqlite?.lists.page(sources, index.isAscending ? { after: 0 } : {}, 1_000)
      expect(keys).toEqual(expected(state).map(({ key }) => index.toListKey(key)))
    }
  },
})
