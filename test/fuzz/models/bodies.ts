import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { readFileSync } from 'node:fs'
import type { Rows } from '../../../src/domain/store/operation.ts'
import type { Stores } from '../../../src/domain/store/store.ts'
import { connect, type SqliteOptions } from '../../../src/store/sqlite/database.ts'
import { openTestSqlite, registerShortIds, type OpenTestDatabase } from '../../helpers/databases.ts'
import { readRows } from '../../helpers/read-rows.ts'
import type { FuzzProperty } from '../property.ts'
import { defineModel } from './model.ts'
import type { Process } from './processes.ts'

/** How a transaction ends: `stall` lets the whole batch fail, which its last job finds out. */
type End = 'commit' | 'throw' | 'stall'

type Planned<Call> = { call: Call; end: End }

const planned = <Call>(call: fc.Arbitrary<Call>): fc.Arbitrary<Planned<Call>> =>
  fc.record({
    call,
    end: fc.oneof(
      { weight: 12, arbitrary: fc.constant<End>('commit') },
      { weight: 2, arbitrary: fc.constant<End>('throw') },
      { weight: 1, arbitrary: fc.constant<End>('stall') },
    ),
  })

class ChosenFailure extends Error {}

/** Creates the data file with which each run begins. */
export async function createContent(
  prepare: (opened: OpenTestDatabase & { path: string }) => Promise<unknown>,
): Promise<Uint8Array> {
  const opened = await openTestSqlite()
  try {
    await prepare(opened)
    const connection = connect(opened.path, 0)
    connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
    connection.close()
    return readFileSync(opened.path)
  } finally {
    await opened.dispose()
  }
}

export const withShortIds = (...ids: string[]) =>
  createContent(({ database }) => registerShortIds(database, ...ids))

type Own<State> = { number: number; process: Process; state: Readonly<State> }

/** A model whose calls are bodies of ordinary transactions. `State` is the plain model: data that can be cloned. */
export type BodyModel<Call, State, Result> = {
  name: string
  shortRuns: number
  options?: Partial<SqliteOptions>
  call: fc.Arbitrary<Call>
  open(): Promise<{ content: Uint8Array; state: State }>
  /** Called before calls that run at the same time. */
  beforeCalls?(state: State, calls: readonly Call[]): void
  /** Makes a call in a transaction. @returns what it found */
  perform(tx: Stores, call: Call, own: Own<State>): Promise<Result>
  /** Makes calls that only read, as an operation does: after the bodies of its batch. */
  operations?: { has(call: Call): boolean; read(rows: Rows, call: Call, own: Own<State>): Result }
  /** Makes the same call on the plain model. @param found what the call found @returns what it must have found */
  apply(state: State, call: Call, number: number, found: Result): Result | Promise<Result>
  check(process: Process, state: Readonly<State>, pick: number | undefined): Promise<void>
}

export const defineBodyModel = <Call, State extends object, Result = unknown>(
  model: BodyModel<Call, State, Result>,
): FuzzProperty =>
  defineModel<Planned<Call>>({
    name: model.name,
    shortRuns: model.shortRuns,
    options: model.options ?? {},
    call: planned(model.call),
    callsMax: 6,
    async open() {
      const { content, state: first } = await model.open()
      return {
        content,
        start() {
          let state = structuredClone(first)
          return {
            async run(calls) {
              model.beforeCalls?.(
                state,
                calls.map(({ call }) => call.call),
              )
              /** Results in the order of the transactions. A batch that runs again counts the last time. */
              const results = new Map<(typeof calls)[number], Result>()
              const running = calls.map((numbered) => {
                const { call, number, process } = numbered
                const own = { number, process, state }
                const { operations } = model
                if (operations?.has(call.call))
                  return readRows(process.store, {}, (rows) => {
                    results.delete(numbered)
                    results.set(numbered, operations.read(rows, call.call, own))
                    if (call.end === 'throw') throw new ChosenFailure()
                  })
                return process.store.write(async (tx) => {
                  results.delete(numbered)
                  const result = await model.perform(tx, call.call, own)
                  results.set(numbered, result)
                  if (call.end === 'throw') throw new ChosenFailure()
                  if (call.end === 'stall') await new Promise(setImmediate)
                })
              })
              const settled = await Promise.allSettled(running)
              for (const [index, { call }] of calls.entries()) {
                const outcome = settled[index]
                if (outcome?.status !== 'rejected') continue
                const isExpected =
                  (call.end === 'throw' && outcome.reason instanceof ChosenFailure) ||
                  String(outcome.reason).includes('awaited something other than its transaction')
                if (!isExpected) throw outcome.reason
              }
              const committed = [...results].filter(
                ([numbered]) => settled[calls.indexOf(numbered)]?.status === 'fulfilled',
              )
              return async () => {
                for (const [{ call, number }, result] of committed)
                  expect(result).toEqual(await model.apply(state, call.call, number, result))
              }
            },
            check: (process, pick) => model.check(process, state, pick),
            save() {
              const saved = structuredClone(state)
              return () => void (state = structuredClone(saved))
            },
          }
        },
      }
    },
  })
