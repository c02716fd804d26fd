import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, startServer } from '../helpers/binary.ts'
import { findProgram } from '../helpers/external-program.ts'

const unit =
  /```ini\n(\[Unit\][^`]*)```/.exec(
    readFileSync(join(import.meta.dir, '../../src/docs/operating.md'), 'utf8'),
  )?.[1] ?? ''
const analyze = findProgram('systemd-analyze')
if (analyze === null)
  process.stderr.write('Skipped: the check of the systemd unit. It needs systemd-analyze.\n')

/** Verifies the unit with systemd-analyze. @returns its output, and whether it would load the unit */
async function check(...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-unit-'))
  try {
    const path = join(folder, 'otpd.service')
    writeFileSync(path, unit.replace('/usr/local/bin/otpd', binaryPath))
    const result = Bun.spawnSync([analyze ?? '', ...args, path])
    return {
      exitCode: result.exitCode,
      text: `${result.stdout}${result.stderr}`.replaceAll(path, 'otpd.service'),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test.skipIf(analyze === null)('systemd accepts the unit of the guide without a warning', async () => {
  expect(unit).toContain('ExecStart=/usr/local/bin/otpd serve')
  const { exitCode, text } = await check('verify')
  expect({ exitCode, ours: text.split('\n').filter((line) => line.includes('otpd.service')) }).toEqual({
    exitCode: 0,
    ours: [],
  })
})

test('the unit restarts after every exit, and gives the drain ten seconds', () => {
  const settings = new Map(unit.split('\n').map((line) => line.split(/=(.*)/s, 2) as [string, string]))
  expect(settings.get('Restart')).toBe('always')
  expect(settings.get('StartLimitIntervalSec')).toBe('0')
  expect(Number.parseInt(settings.get('TimeoutStopSec') ?? '', 10)).toBeGreaterThan(10)
  expect(settings.get('LimitCORE')).toBe('0')
})

test('a killed server can reuse its data directory and port at once', async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-unit-'))
  const first = await startServer({ home })
  const listen = new URL(first.url).host
  await first.stop('SIGKILL')
  const second = await startServer({ home, env: { OTPD_LISTEN: listen } })
  expect(new URL(second.url).host).toBe(listen)
  expect((await fetch(`${second.url}/v1/health/ready`)).status).toBe(200)
  await second.stop()
  rmSync(home, { recursive: true, force: true })
})
