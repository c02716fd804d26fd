import { expect, test } from 'bun:test'
import { hashContexts } from '../../../src/domain/model/context.ts'
import { deriveKeys } from '../../helpers/keys.ts'

const keys = deriveKeys(new Uint8Array(32).fill(1))
const contexts = (clientIp: string | null, deviceId: string | null, developerId = 'dev_1') =>
  hashContexts(keys, developerId, { clientIp, deviceId })

test('a network and a device are a context each', () => {
  expect(contexts(null, null)).toEqual([])
  expect(contexts('192.0.2.1', 'device')).toHaveLength(2)
  expect(contexts('192.0.2.1', null)).toEqual(contexts('192.0.2.1', 'device').slice(0, 1))
})

test('addresses of one IPv6 customer are one context', () => {
  expect(contexts('2001:db8::1', null)).toEqual(contexts('2001:db8::ffff', null))
})

test('a device that is named like a network is another context', () => {
  expect(contexts(null, '4:c0000201')).not.toEqual(contexts('192.0.2.1', null))
})

test('developers do not share contexts', () => {
  expect(contexts('192.0.2.1', 'device', 'dev_2')).not.toEqual(contexts('192.0.2.1', 'device'))
})
