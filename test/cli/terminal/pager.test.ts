import { expect, test } from 'bun:test'
import { page } from '../../../cli/terminal/pager.ts'
import type { Io } from '../../../cli/terminal/io.ts'

test('a pager that quits before it has read a long text causes no error', async () => {
  const written: string[] = []
  const io = {
    env: { ...process.env, PAGER: 'true' },
    stdinIsTerminal: true,
    stdoutIsTerminal: true,
    writeOut: (text: string) => void written.push(text),
  } as unknown as Io
  // More than the buffer between the two holds.
  await page(io, 'x'.repeat(1_000_000))
  // A rejection without a handler ends the process at the next turn.
  await Bun.sleep(1)
  expect(written).toEqual([])
})
