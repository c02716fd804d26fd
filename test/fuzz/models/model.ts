import * as fc from 'fast-check'
import type { Clock } from '../../../src/domain/model/clock.ts'
import type { SqliteOptions } from '../../../src/store/sqlite/database.ts'
import { defineProperty, type FuzzProperty } from '../property.ts'
import { createProcesses, type Process, type ProcessName, type Processes } from './processes.ts'

/** A call of one of the processes. `number` is its own. */
export type NumberedCall<Call> = { call: Call; number: number; process: Process }

/** One run: the calls on the real processes, and a plain model of the data file, which remembers nothing else. */
export type Session<Call> = {
  /** That of its processes; the machine's by default. */
  clock?: Clock
  /**
   * Makes calls at the same time.
   *
   * @returns makes them on the plain model too, and compares the results. It is not called if a kill has lost them
   */
  run(calls: ReadonlyArray<NumberedCall<Call>>): Promise<() => void | Promise<void>>
  /** Compares what a process reads with the plain model. @param pick chooses a part; undefined: everything */
  check(process: Process, pick: number | undefined): Promise<void>
  /** @returns a function that puts the plain model back to what it is now */
  save(): () => void | Promise<void>
  close?(): Promise<void>
}

export type Model<Call> = {
  name: string
  shortRuns: number
  /** Limits so low that a run exceeds them. */
  options: Partial<SqliteOptions>
  call: fc.Arbitrary<Call>
  /** Calls that run at the same time. */
  callsMax: number
  /** Creates the data file with which each run begins. @returns it, and what starts a run */
  open(): Promise<{ content: Uint8Array; start(): Session<Call> }>
}

type Step<Call> = { pick: number } & (
  | { kind: 'calls'; process: ProcessName; calls: Call[] }
  | { kind: 'calls of both'; calls: Array<{ process: ProcessName; call: Call }> }
  | { kind: 'kill'; calls: Call[]; turns: number; at: number }
  | { kind: 'restart' | 'end of the host command' | 'backup' | 'restore' }
)

const steps = <Call>({ call, callsMax }: Model<Call>): fc.Arbitrary<Array<Step<Call>>> => {
  const pick = fc.nat()
  const calls = fc.array(call, { minLength: 1, maxLength: callsMax })
  return fc.array(
    fc.oneof(
      {
        weight: 10,
        arbitrary: fc.record({
          pick,
          kind: fc.constant('calls' as const),
          process: fc.constantFrom<ProcessName>('server', 'server', 'server', 'host'),
          calls,
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          pick,
          kind: fc.constant('calls of both' as const),
          calls: fc.array(fc.record({ process: fc.constantFrom<ProcessName>('server', 'host'), call }), {
            maxLength: callsMax,
          }),
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({
          pick,
          kind: fc.constant('kill' as const),
          calls,
          turns: fc.nat(6),
          at: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          pick,
          kind: fc.constantFrom('restart', 'end of the host command', 'backup', 'restore'),
        }),
      },
    ),
    { maxLength: 14 },
  )
}

const nextTurn = () => new Promise(setImmediate)

/**
 * Defines the property that a database with all that its processes remember behaves as a plain model of its rows: while
 * calls of a server and of a host command run at the same time and fail, and while the processes stop, are killed at any
 * write, and start again on a backup.
 */
export const defineModel = <Call>(model: Model<Call>): FuzzProperty =>
  defineProperty(model.name, model.shortRuns, async () => {
    const { content, start } = await model.open()
    const property = fc.asyncProperty(steps(model), async (list) => {
      const session = start()
      await using processes = createProcesses(content, model.options, session.clock)
      try {
        await runSteps(processes, session, list)
        await checkAll(processes, session, undefined)
      } finally {
        await session.close?.()
      }
    })
    return { property }
  })

async function checkAll<Call>(processes: Processes, session: Session<Call>, pick: number | undefined) {
  // The snapshot of a process lasts until the turn of the event loop ends.
  await nextTurn()
  await session.check(processes.get('server'), pick)
  // Not each time, so that a host command also misses several commits.
  if (processes.isRunning('host') && (pick === undefined || pick % 3 === 0))
    await session.check(processes.get('host'), pick)
}

async function runSteps<Call>(processes: Processes, session: Session<Call>, list: ReadonlyArray<Step<Call>>) {
  let calls = 0
  const number = (process: ProcessName, call: Call): NumberedCall<Call> => ({
    call,
    number: ++calls,
    process: processes.get(process),
  })
  let restore: (() => Promise<void>) | undefined

  for (const step of list) {
    switch (step.kind) {
      case 'calls': {
        const apply = await session.run(step.calls.map((call) => number(step.process, call)))
        await apply()
        break
      }
      case 'calls of both': {
        const apply = await session.run(step.calls.map(({ process, call }) => number(process, call)))
        await apply()
        break
      }
      case 'kill': {
        const numbered = step.calls.map((call) => number('server', call))
        const before = processes.walBytes()
        const putBack = session.save()
        const apply = await session.run(numbered)
        const acknowledged = processes.walBytes()
        // Work in the background goes on.
        for (let turn = 0; turn < step.turns; turn++) await nextTurn()
        const at = before + Math.round((processes.walBytes() - before) * step.at)
        if (at < (processes.firstCommitAfter(before) ?? 0)) {
          await processes.kill(at)
          await putBack()
        } else {
          await processes.kill(Math.max(at, acknowledged))
          await apply()
        }
        break
      }
      case 'restart':
        await processes.exit('server')
        break
      case 'end of the host command':
        await processes.exit('host')
        break
      case 'backup': {
        const putBack = session.save()
        const putFileBack = processes.backUp()
        restore = async () => {
          await putFileBack()
          await putBack()
        }
        break
      }
      case 'restore':
        await restore?.()
    }
    await checkAll(processes, session, step.pick)
  }
}
