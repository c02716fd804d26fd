import { describe, expect, test } from 'bun:test'
import { createDisk, type Loss, type Operation } from './replay.ts'

const createDataDisk = () => createDisk('data')
const always = () => 0
const never = () => 0.99

function operation(type: Operation['type'], file: string, offset = 0, text = ''): Operation {
  return { type, file, offset, data: Buffer.from(text) }
}

function cutAfter(operations: Operation[], loss: Loss, random: () => number) {
  const simulated = createDataDisk()
  for (const entry of operations) simulated.apply(entry)
  return Object.fromEntries([...simulated.cut(loss, random)].map(([name, bytes]) => [name, bytes.toString()]))
}

describe('after a power cut', () => {
  const writes = [operation('W', 'a', 0, 'synced'), operation('S', 'a'), operation('W', 'a', 4, 'NEW')]

  test('synced writes survive, and unsynced ones are lost', () => {
    expect(cutAfter(writes, 'none', always)).toEqual({ a: 'synced' })
  })

  test('unsynced writes may survive', () => {
    expect(cutAfter(writes, 'some', always)).toEqual({ a: 'syncNEW' })
    expect(cutAfter(writes, 'some', never)).toEqual({ a: 'synced' })
  })

  test('a torn write survives in some sectors', () => {
    const sectors = [operation('W', 'a', 0, `${'1'.repeat(512)}${'2'.repeat(512)}`)]
    // Draws for one write: first whether any of it survives, then each sector.
    const draws = [0, 0.9, 0]
    expect(cutAfter(sectors, 'torn', () => draws.shift() ?? 0)).toEqual({
      a: `${'\0'.repeat(512)}${'2'.repeat(512)}`,
    })
  })

  test('a file that was never synced is lost', () => {
    expect(cutAfter([operation('W', 'a', 0, 'text')], 'none', always)).toEqual({})
  })

  test('a truncation survives once it is synced', () => {
    const cut = [...writes.slice(0, 2), operation('T', 'a', 2)]
    expect(cutAfter(cut, 'none', always)).toEqual({ a: 'synced' })
    expect(cutAfter([...cut, operation('S', 'a')], 'none', always)).toEqual({ a: 'sy' })
  })

  test('a deleted file is restored unless its directory was synced', () => {
    const removed = [...writes.slice(0, 2), operation('U', 'a')]
    expect(cutAfter(removed, 'none', always)).toEqual({ a: 'synced' })
    expect(cutAfter([...removed, operation('S', 'data')], 'none', always)).toEqual({})
  })
})
