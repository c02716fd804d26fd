import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { otpStatuses, type OtpRequest, type OtpStatus } from '../../../src/domain/model/request.ts'
import type { Stores } from '../../../src/domain/store/store.ts'
import type { LogType } from '../../../src/shared/event-kinds.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestFile, openTestSqlite, registerShortIds } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { createPendingRequest } from '../../helpers/otp-request.ts'
import { defineProperty } from '../property.ts'

const developers = ['dev_1', 'dev_2']
const appsByDeveloper: Record<string, string[]> = { dev_1: ['app_1', 'app_2'], dev_2: ['app_3'] }
const apps = Object.entries(appsByDeveloper).flatMap(([developerId, ids]) =>
  ids.map((appId) => ({ developerId, appId })),
)
const start = 1_800_000_000_000

/** Calls of a group share a batch of the write queue. `fails` throws after it has written. */
type Call =
  | { kind: 'send'; app: number; fails: boolean }
  | { kind: 'close'; nth: number; status: 'verified' | 'canceled' | 'failed'; fails: boolean }
  | { kind: 'delete'; count: number }

type Step =
  { kind: 'calls'; process: 0 | 1; calls: Call[] } | { kind: 'restart' } | { kind: 'check'; limit: number }

const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      app: fc.nat(apps.length - 1),
      fails: fc.nat(5).map((n) => n === 0),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('close' as const),
      nth: fc.nat(20),
      status: fc.constantFrom('verified', 'canceled', 'failed'),
      fails: fc.nat(5).map((n) => n === 0),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('delete' as const), count: fc.integer({ min: 1, max: 9 }) }),
  },
)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      process: fc.constantFrom(0, 0, 0, 1),
      calls: fc.array(call, { minLength: 1, maxLength: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('check' as const), limit: fc.constantFrom(1, 2, 5, 50) }),
  },
)

/** The rows that the lists must have, oldest first. */
type Model = {
  requests: Array<OtpRequest & { status: OtpStatus }>
  entries: Array<{ seq: number; developerId: string; appId: string; type: LogType }>
}

const typeByStatus = { verified: 'otp.verified', canceled: 'otp.canceled', failed: 'otp.failed' } as const

class Failure extends Error {}

const holds = defineProperty(
  'lists are those of the rows at every moment, through failures, restarts and writes of another process',
  60,
  async () => {
    let ids = 0
    const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const tailLimits = { entriesMax: 6, sliceKeysMax: 25 }
      const { path, database: first, dispose } = await openTestSqlite({ tailLimits })
      const open = () => openTestFile(path, { tailLimits })
      // The other process is a host command.
      const host = openTestFile(path, { tailLimits: { ...tailLimits, entriesMax: Infinity } })
      const databases: [Database, Database] = [first, host]
      const model: Model = { requests: [], entries: [] }
      await registerShortIds(first, 'prj', ...developers, ...apps.map(({ appId }) => appId))
      let stores = databases.map((database) => createStore(database, { keys: testKeys }))
      let seq = 0

      async function record(tx: Stores, { developerId, appId }: OtpRequest, type: LogType) {
        const entry = {
          type,
          developerId,
          appId,
          requestId: null,
          phone: null,
          status: null,
          detail: null,
          at: start,
        }
        await tx.events.append([{ entry }])
      }

      async function run(process: 0 | 1, one: Call): Promise<void> {
        const store = stores[process]
        if (!store) return
        if (one.kind === 'delete') {
          const cutoff = model.requests[one.count]?.createdAt ?? 0
          await store.write((tx) => tx.otpRequests.deleteOldest(cutoff, one.count))
          return
        }
        const pending = model.requests.filter(({ status }) => status === 'pending')
        const request =
          one.kind === 'send'
            ? createPendingRequest(start + ids, {
                ...apps[one.app],
                projectId: 'prj',
                id: `otp_${String(ids++).padStart(6, '0')}`,
              })
            : pending[one.nth % Math.max(1, pending.length)]
        if (!request) return
        await store
          .write(async (tx) => {
            if (one.kind === 'send') await tx.otpRequests.insert(request)
            else {
              // Another call of the group may have closed or deleted it.
              const current = await tx.otpRequests.lock(request.id)
              if (current?.status !== 'pending') return
              await tx.otpRequests.update({
                ...current,
                status: one.status,
                verifiedAt: one.status === 'verified' ? start : null,
                failureReason: one.status === 'failed' ? 'blocked' : null,
              })
            }
            await record(tx, request, one.kind === 'send' ? 'otp.sent' : typeByStatus[one.status])
            if (one.fails) throw new Failure()
          })
          .catch((error: unknown) => {
            if (!(error instanceof Failure)) throw error
          })
      }

      /** Reads the rows themselves, which no list is needed for. */
      async function readModel() {
        const [database] = databases
        const { otpRequests, events } = database.tables
        model.requests = (await database.read.select().from(otpRequests).orderBy(otpRequests.id)).map((row) =>
          createPendingRequest(row.createdAt, { ...row, contexts: [], metadata: null, channel: 'sms' }),
        )
        model.entries = (await database.read.select().from(events).orderBy(events.seq)).map((row) => ({
          seq: row.seq,
          developerId: row.developerId,
          appId: row.appId ?? '',
          type: row.type as LogType,
        }))
        seq = model.entries.at(-1)?.seq ?? 0
      }

      async function listAll<T>(load: (before: T | undefined) => Promise<T[]>): Promise<T[]> {
        const all: T[] = []
        for (;;) {
          const page = await load(all.at(-1))
          if (page.length === 0) return all
          all.push(...page)
          // A move goes on between two pages.
          await new Promise(setImmediate)
        }
      }

      async function check(limit: number) {
        for (const store of stores) {
          const { otpRequests, events } = store.read
          for (const developerId of developers) {
            for (const appId of [undefined, ...apps.map((app) => app.appId)]) {
              const isOwn = (row: { developerId: string; appId: string }) =>
                row.developerId === developerId && (appId === undefined || row.appId === appId)
              for (const status of [undefined, ...otpStatuses]) {
                const expected = model.requests.filter(
                  (row) => isOwn(row) && (status === undefined || row.status === status),
                )
                const query = { developerId, appId, status, now: start, limit }
                const listed = await listAll<string>(async (before) =>
                  (await otpRequests.list({ ...query, before })).map(({ id }) => id),
                )
                expect(listed).toEqual(expected.map(({ id }) => id).toReversed())
              }
              for (const types of [undefined, ['otp.sent'], ['otp.verified', 'otp.failed']] as Array<
                LogType[] | undefined
              >) {
                const expected = model.entries
                  .filter((row) => isOwn(row) && (types === undefined || types.includes(row.type)))
                  .map((row) => row.seq)
                const older = await listAll<number>(async (beforeSeq) =>
                  (await events.list(developerId, { appId, types, limit, beforeSeq })).map((row) => row.seq),
                )
                expect(older).toEqual(expected.toReversed())
                const newer = await listAll<number>(async (afterSeq = 0) =>
                  (await events.list(developerId, { appId, types, limit, afterSeq })).map((row) => row.seq),
                )
                expect(newer).toEqual(expected)
              }
            }
          }
        }
      }

      try {
        for (const next of [...steps, { kind: 'check' as const, limit: 3 }]) {
          if (next.kind === 'calls') {
            await Promise.all(next.calls.map((one) => run(next.process, one)))
            await readModel()
          } else if (next.kind === 'check') await check(next.limit)
          else {
            // Stops a move between two slices.
            await databases[0].close()
            databases[0] = open()
            stores = databases.map((database) => createStore(database, { keys: testKeys }))
          }
        }
      } finally {
        await Promise.all(databases.map((database) => database.close()))
        await dispose().catch(() => {})
      }
      expect(seq).toBeGreaterThanOrEqual(0)
    })
    return { property }
  },
)

export const listProperties = [holds]
