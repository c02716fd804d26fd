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
