import { expect, test } from 'bun:test'
import type { Log } from '../../src/log/log.ts'
import { createOutageReporter, withoutOutages } from '../../src/server/outage-log.ts'
import { unavailable } from '../../src/store/engine/errors.ts'

test('counts the failures of an outage, once a second, and says when it has ended', () => {
  const lines: unknown[] = []
  const add = (msg: string, fields: unknown) => void lines.push([msg, fields])
  const log: Log = { debug: add, info: add, warn: add, error: add, flush: () => Promise.resolve() }
  let now = 0
  const { onFailure, onSuccess } = createOutageReporter(log, { now: () => now })
  onSuccess()
  for (const at of [0, 100, 200, 1200, 1300, 1400]) {
    now = at
    onFailure('57P01')
  }
  now = 5000
  onSuccess()
  onSuccess()
  const failed = 'the database is unavailable; callers are told to retry'
  expect(lines).toEqual([
    [failed, { cause: '57P01', failures: 1 }],
    [failed, { cause: '57P01', failures: 3 }],
    ['the database is available again', { outageMs: 5000, failures: 6 }],
  ])
})

test('leaves out failures of the database that its reporter counts, also of reads, whose errors are the driver’s', () => {
  const logged: string[] = []
  const nothing = () => {}
  const log: Log = {
    debug: nothing,
    info: nothing,
    warn: nothing,
    error: (msg) => void logged.push(msg),
    flush: () => Promise.resolve(),
  }
  const { error } = withoutOutages(log)
  error('write', { error: unavailable('57P01') })
  error('read', { error: new Error('Failed query', { cause: { code: 'ECONNREFUSED' } }) })
  error('defect', { error: new Error('Failed query', { cause: { code: '42601' } }) })
  error('none')
  expect(logged).toEqual(['defect', 'none'])
})
