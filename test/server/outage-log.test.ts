import { expect, test } from 'bun:test'
import type { Log } from '../../src/log/log.ts'
import { withoutOutages } from '../../src/server/outage-log.ts'
import { unavailable } from '../../src/store/engine/errors.ts'

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
