import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { lastCopiedText } from '../helpers/screen.ts'

// The screen of alerts on the machine of the server: a real alert, its destination, and tests of it.

setDefaultTimeout(300_000)

let host: ConsoleHost
let receiver: Bun.Server<undefined>
let isRefusing = false
const received: string[] = []

beforeAll(async () => {
  receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (new URL(request.url).pathname === '/gone') return new Response(null, { status: 410 })
      received.push(((await request.json()) as { type: string }).type)
      return new Response(null, { status: isRefusing ? 500 : 200 })
    },
  })
  const folder = mkdtempSync(join(tmpdir(), 'otpd-alerts-'))
  const config = join(folder, 'otpd.toml')
  writeFileSync(config, `[[alerts]]\nname = "night"\nkind = "webhook"\nurl = "${receiver.url}alerts"\n`)
  host = await startConsoleHost({ env: { OTPD_CONFIG: config, OTPD_WEBHOOK_ALLOW: '127.0.0.1' } })
})
afterAll(async () => {
  await host.stop()
  await receiver.stop(true)
})

const openAlerts = async (env: Record<string, string>) => {
  const terminal = await host.open([], { columns: 80, rows: 24 }, env)
  terminal.press(':')
  await terminal.waitForText('Go to')
  terminal.press('alerts')
  // Keys that arrive together are one text.
  await terminal.waitForText('▸ Alerts')
  terminal.press('enter')
  return terminal
}

test('shows what is wrong, what to do, and whether each destination takes its messages', async () => {
  const terminal = await openAlerts({ OTPD_DATA_DIR: host.server.dataDir })
  await terminal.waitForText('Nothing is wrong.')
  await terminal.waitForText(/night +webhook +warning +● nothing waits/)

  await host.otpd(['project', 'create', 'shop'])
  await host.otpd(['app', 'create', 'web', '-p', 'shop', '-e', 'test', '--env-file', 'web.env'])
  await host.otpd([
    'webhook',
    'create',
    '--app',
    'web',
    '--url',
    `${receiver.url}gone`,
    '--events',
    'otp.sent',
  ])
  await host.otpd(['otp', 'send', '+14155550100', '--env-file', 'web.env'])
  await terminal.waitForText(/▲ warning +\S.* webhook: endpoint whk_/)
  await terminal.waitForText('Correct the receiver, then: otpd webhook enable whk_')
  await terminal.waitUntil(() => received.includes('alert.firing'), 'the destination to be told')
  terminal.press('y')
  await terminal.waitForText('copied alert')
  expect(lastCopiedText(terminal.written())).toContain('it answered 410 Gone')

  terminal.press('T')
  await terminal.waitForText('night: sent')
  isRefusing = true
  terminal.press('T')
  await terminal.waitForText('night: HTTP 500')
  expect(received.slice(-2)).toEqual(['alert.test', 'alert.test'])
  const { destinations } = await host.json<{ destinations: unknown[] }>([
    'alerts',
    '--data-dir',
    host.server.dataDir,
  ])
  expect(destinations).toMatchObject([{ name: 'night', kind: 'webhook', min: 'warning', waiting: 0 }])
  await terminal.close()
})

test('says where alerts are read if the server has another data directory, or another machine', async () => {
  const terminal = await openAlerts({ OTPD_DATA_DIR: mkdtempSync(join(tmpdir(), 'otpd-none-')) })
  await terminal.waitForText('Alerts are for the operator.')
  await terminal.waitForText(/uses\s+the\s+data\s+directory\s+of\s+this\s+shell/)
  await terminal.waitForText('OTPD_DATA_DIR=DIR otpd')
  await terminal.close()
})
