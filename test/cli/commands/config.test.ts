import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHome } from '../cli-fixture.ts'

let home: ReturnType<typeof createHome>

beforeEach(() => {
  home = createHome()
})
afterEach(() => home.remove())

test.each(['show', 'check'])(
  'config %s: a wrong flag is a usage error, a wrong file a failed check',
  async (command) => {
    const config = async (...args: string[]) => (await home.otpd(['config', command, ...args])).exitCode
    expect(await config('--listen', 'NaN')).toBe(2)
    expect(await config('--log-level', 'loud', '--public-url', '')).toBe(2)
    const file = join(home.directory, 'otpd.toml')
    writeFileSync(file, '[server]\nlisten = "NaN"\n')
    expect(await config('--config', file)).toBe(8)
    expect(await config('--config', file, '--log-level', 'loud')).toBe(8)
  },
)

test('alerts test reports a wrong configuration, not a server that does not run', async () => {
  const { exitCode, stderr } = await home.otpd(['alerts', 'test', '--config', home.directory])
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('is a folder, not a file.')])
})
