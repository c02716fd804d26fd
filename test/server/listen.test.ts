import { expect, test } from 'bun:test'
import { bindOrExplain } from '../../src/server/listen.ts'
import { StartRefused } from '../../src/store/data-dir/data-dir.ts'

const explain = (code: string) => {
  try {
    bindOrExplain({ host: '0.0.0.0', port: 443 }, '--listen', () => {
      throw Object.assign(new Error('listen'), { code })
    })
  } catch (error) {
    if (error instanceof StartRefused) return [error.message, error.remedy]
    throw error
  }
  return undefined
}

test('a port that is in use, and one that the user may not have, are told apart', () => {
  expect(explain('EADDRINUSE')).toEqual([
    'cannot listen on 0.0.0.0:443: the address is already in use',
    'Choose another address with --listen, or stop the program that uses this one.',
  ])
  expect(explain('EACCES')).toEqual([
    'cannot listen on 0.0.0.0:443: port 443 needs a right that this user does not have',
    'With systemd, give the unit CAP_NET_BIND_SERVICE (otpd docs tls: Ports below 1024); otherwise choose a port from 1024 on with --listen.',
  ])
  expect(explain('EADDRNOTAVAIL')).toEqual([
    'cannot listen on 0.0.0.0:443: no interface of this machine has this address',
    'Choose an address of this machine with --listen, or 0.0.0.0 for all of them.',
  ])
  expect(explain('EINVAL')).toEqual(['cannot listen on 0.0.0.0:443', 'Choose another address with --listen.'])
})
