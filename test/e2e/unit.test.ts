import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, startServer } from '../helpers/binary.ts'
import { findProgram } from '../helpers/external-program.ts'

const linux = join(import.meta.dir, '../../.packaging/linux')
const unit = readFileSync(join(linux, 'otpd.service'), 'utf8')
const analyze = findProgram('systemd-analyze')
if (analyze === null)
  process.stderr.write('Skipped: the check of the systemd unit. It needs systemd-analyze.\n')

/** Verifies the units, with all drop-ins, for the path of the binary. */
function check() {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-unit-'))
  try {
    mkdirSync(join(folder, 'otpd.service.d'))
    for (const name of readdirSync(linux)) {
      const text = readFileSync(join(linux, name), 'utf8').replace('/usr/local/bin/otpd', binaryPath)
      if (/\.(service|timer)$/.test(name)) writeFileSync(join(folder, name), text)
      if (name.endsWith('.conf') && name !== 'sysusers.conf')
        writeFileSync(join(folder, 'otpd.service.d', name), text)
    }
    const units = ['otpd.service', 'otpd-backup.service', 'otpd-backup.timer'].map((name) =>
      join(folder, name),
    )
    const result = Bun.spawnSync([analyze ?? '', '--man=no', 'verify', ...units])
    return { exitCode: result.exitCode, lines: `${result.stdout}${result.stderr}`.split('\n') }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test.skipIf(analyze === null)('systemd accepts the units and drop-ins without a warning', () => {
  expect(unit).toContain('ExecStart=/usr/local/bin/otpd serve')
  const { exitCode, lines } = check()
  expect({ exitCode, ours: lines.filter((line) => line.includes('otpd')) }).toEqual({ exitCode: 0, ours: [] })
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
  await second.waitUntilReady()
  await second.stop()
  rmSync(home, { recursive: true, force: true })
})
