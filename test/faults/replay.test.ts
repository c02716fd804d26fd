import { describe, expect, test } from 'bun:test'
import { createDisk, type Loss, type Operation } from './replay.ts'

const createDataDisk = () => createDisk('data')
const always = () => 0
const never = () => 0.99

function operation(type: Operation['type'], file: string, offset = 0, text = ''): Operation {
  return { type, file, offset, data: Buffer.from(text) }
}

const sync = (file: string) => [operation('B', file), operation('S', file)]

function cutAfter(operations: Operation[], loss: Loss, random: () => number) {
  const simulated = createDataDisk()
  for (const entry of operations) simulated.apply(entry)
  return Object.fromEntries([...simulated.cut(loss, random)].map(([name, bytes]) => [name, bytes.toString()]))
}

describe('after a power cut', () => {
  const writes = [operation('W', 'a', 0, 'synced'), ...sync('a'), operation('W', 'a', 4, 'NEW')]

  test('synced writes survive, and unsynced ones are lost', () => {
    expect(cutAfter(writes, 'none', always)).toEqual({ a: 'synced' })
  })

  test('a write is lost that was made while a sync was under way', () => {
    const [begin, end] = sync('a') as [Operation, Operation]
    const late = [begin, operation('W', 'a', 0, 'late'), end]
    expect(cutAfter([operation('W', 'a', 0, 'synced'), ...late], 'none', always)).toEqual({ a: 'synced' })
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
    const cut = [...writes.slice(0, 3), operation('T', 'a', 2)]
    expect(cutAfter(cut, 'none', always)).toEqual({ a: 'synced' })
    expect(cutAfter([...cut, ...sync('a')], 'none', always)).toEqual({ a: 'sy' })
  })

  test('a deleted file is restored unless its directory was synced', () => {
    const removed = [...writes.slice(0, 3), operation('U', 'a')]
    expect(cutAfter(removed, 'none', always)).toEqual({ a: 'synced' })
    expect(cutAfter([...removed, ...sync('data')], 'none', always)).toEqual({})
  })

  test('a new name may be lost unless the directory was synced', () => {
    const renamed = [...writes.slice(0, 3), operation('R', 'a', 0, '/data/b')]
    expect(cutAfter(renamed, 'none', always)).toEqual({ a: 'synced' })
    expect(cutAfter(renamed, 'some', always)).toEqual({ b: 'synced' })
    expect(cutAfter([...renamed, ...sync('data')], 'none', always)).toEqual({ b: 'synced' })
  })
})
