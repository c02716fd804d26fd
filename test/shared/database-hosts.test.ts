import { expect, test } from 'bun:test'
import { splitHosts, targetServer } from '../../src/shared/database-hosts.ts'

test.each<[string, string[]]>([
  ['postgres://u:p@a:1/db', ['postgres://u:p@a:1/db']],
  ['postgres://u:p,q@a:1,b/db', ['postgres://u:p,q@a:1/db', 'postgres://u:p,q@b/db']],
  [
    'postgres://a,[::1]:2/db?sslmode=disable',
    ['postgres://a/db?sslmode=disable', 'postgres://[::1]:2/db?sslmode=disable'],
  ],
  ['postgres://a,b/db?target_session_attrs=read-write', ['postgres://a/db', 'postgres://b/db']],
  ['postgres://a,b/db?target_session_attrs=read-write&x=1', ['postgres://a/db?x=1', 'postgres://b/db?x=1']],
  ['postgres://a,b/db?x=1&target_session_attrs=read-write', ['postgres://a/db?x=1', 'postgres://b/db?x=1']],
])('splits %s', (url, hosts) => {
  expect(splitHosts(url)).toEqual(hosts)
})

test('finds which server is asked for', () => {
  expect(targetServer('postgres://a,b/db?x=1&target_session_attrs=read-write')).toBe('read-write')
  expect(targetServer('postgres://a/db')).toBeUndefined()
})
