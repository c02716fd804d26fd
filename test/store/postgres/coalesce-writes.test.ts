import { Duplex } from 'node:stream'
import { expect, test } from 'bun:test'
import { coalesceWrites } from '../../../src/store/postgres/coalesce-writes.ts'

function openStream() {
  const sent: string[] = []
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      sent.push(String(chunk))
      done()
    },
  })
  coalesceWrites(stream)
  return { stream, sent }
}

test('what is written in one turn is sent at once, in its order', async () => {
  const { stream, sent } = openStream()
  for (const text of ['a', 'b', 'c']) stream.write(Buffer.from(text))
  expect(sent).toEqual([])
  await new Promise(setImmediate)
  expect(sent).toEqual(['abc'])
  stream.write(Buffer.from('d'))
  await new Promise(setImmediate)
  expect(sent).toEqual(['abc', 'd'])
})

test('the last message follows those that wait, and tells when it is sent', async () => {
  const { stream, sent } = openStream()
  stream.write(Buffer.from('a'))
  const end = Promise.withResolvers<void>()
  stream.write(Buffer.from('end'), () => end.resolve())
  await end.promise
  await new Promise(setImmediate)
  expect(sent).toEqual(['a', 'end'])
})
