import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withLock } from '../../../cli/session/lock.ts'
import { processIo } from '../../../cli/terminal/terminal.ts'

test.each([
  ['a folder that is a file', 'file', 'it exists and is no folder, EEXIST'],
  ['a folder in a file', 'file/folder', 'a part of the path is no folder, ENOTDIR'],
  ['a lock that cannot be opened', '', 'it cannot be opened, SQLITE_CANTOPEN'],
])('%s is a fault of the folder, not of this program', async (_, name, cause) => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-lock-'))
  writeFileSync(join(folder, 'file'), '')
  mkdirSync(join(folder, 'lock'))
  try {
    const directory = join(folder, name)
    const locked = withLock(processIo(), join(directory, 'lock'), async () => {})
    await expect(locked).rejects.toMatchObject({
      code: 'CREDENTIALS_NOT_WRITABLE',
      message: `Cannot write to ${directory} (${cause}).`,
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a command waits for another one that renews its token as long as a server may take', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-lock-'))
  const path = join(folder, 'credentials.json.lock')
  const renewal = Promise.withResolvers<void>()
  let now = 0
  const io = {
    ...processIo(),
    now: () => now,
    async sleep(ms: number) {
      now += ms
      if (now > 31_000) renewal.resolve()
      await Bun.sleep(0)
    },
  }
  try {
    const first = withLock(io, path, () => renewal.promise)
    await Bun.sleep(10)
    expect(await withLock(io, path, async () => 'renewed')).toBe('renewed')
    await first
    const stuck = Promise.withResolvers<void>()
    const holder = withLock(io, path, () => stuck.promise)
    await Bun.sleep(10)
    await expect(withLock(io, path, async () => {})).rejects.toMatchObject({ code: 'CREDENTIALS_BUSY' })
    stuck.resolve()
    await holder
  } finally {
    rmSync(folder, { recursive: true })
  }
})
