import { expect, test } from 'bun:test'
import { fileResponse } from '../../src/http/static-file.ts'
import { systemWorld } from '../../src/world/system.ts'

test('a client without gzip keeps the event loop from nothing while its file is unzipped', async () => {
  const text = 'otpd '.repeat(4_000_000)
  const file = { zipped: Bun.gzipSync(text), headers: { 'content-type': 'text/plain' } }
  const answer = fileResponse(new Request('http://localhost/'), file)
  let isAnswered = false
  void answer.then(() => (isAnswered = true))
  await systemWorld.timers.nextTurn()
  expect(isAnswered).toBe(false)
  expect(await (await answer).text()).toBe(text)
})

test('is unzipped once for all clients without gzip', async () => {
  const zipped = new Blob([Bun.gzipSync('otpd')])
  let reads = 0
  const { bytes } = zipped
  zipped.bytes = () => {
    reads++
    return bytes.call(zipped)
  }
  const file = { zipped, headers: { 'content-type': 'text/plain' } }
  await fileResponse(new Request('http://localhost/', { headers: { 'accept-encoding': 'gzip' } }), file)
  const before = reads
  const ask = async () => (await fileResponse(new Request('http://localhost/'), file)).text()
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(['otpd', 'otpd', 'otpd'])
  expect([await ask(), reads - before]).toEqual(['otpd', 1])
})
