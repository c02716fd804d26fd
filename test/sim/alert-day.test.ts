import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { hasOpenssl } from '../helpers/webhook-receiver.ts'

// In a process of its own: the simulator replaces the clock and the timers of all code.
test.skipIf(!hasOpenssl)(
  'a simulated day with every fault and a restart every 95 minutes: each begins and ends once',
  async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'run.ts'), '--alerts'], {
      stdout: 'pipe',
    })
    const output = await new Response(child.stdout).text()
    expect(output).toContain('each alert began and ended once')
    expect(await child.exited).toBe(0)
  },
  300_000,
)
