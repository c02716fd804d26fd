import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withLock } from '../../../cli/session/lock.ts'
import { processIo } from '../../../cli/terminal/terminal.ts'

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
