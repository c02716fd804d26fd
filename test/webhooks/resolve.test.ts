import { expect, test } from 'bun:test'
import { createResolver } from '../../src/webhooks/resolve.ts'

test('addresses are kept for a while, and failures are not', async () => {
  const names: string[] = []
  let fails = true
  const lookupAll = async (host: string) => {
    names.push(host)
    if (fails) throw new Error('no such name')
    return [{ address: `192.0.2.${names.length}`, family: 4 }]
  }
  const resolve = createResolver(1_000, lookupAll, 30)
  expect(resolve('a.example')).rejects.toThrow('no such name')
  await resolve('a.example').catch(() => undefined)
  fails = false
  const [first] = await resolve('a.example')
  expect(await resolve('a.example')).toEqual(first ? [first] : [])
  await resolve('b.example')
  const lookups = names.length
  while ((await resolve('a.example'))[0]?.address === first?.address) await new Promise(setImmediate)
  expect(names.slice(lookups)).toEqual(['a.example'])
})
