import { test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../../../src/server/start.ts'
import { loadEnv, requireConfig } from '../../helpers/config.ts'
import { collectLog } from '../../helpers/log.ts'
import { login, logIn } from '../../helpers/webhook-client.ts'
import { startReceiver } from '../../helpers/webhook-receiver.ts'

// Run by ../executed-lines.ts with coverage: a server in this process gets `count` calls of one kind. What comes before
// them is the same for every count.

const kind = process.env['EXECUTED_LINES_KIND'] ?? 'send'
const count = Number(process.env['EXECUTED_LINES_COUNT'] ?? 1)
const most = 8

test(
  kind,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'otpd-lines-'))
    const receiver = await startReceiver()
    const config = requireConfig(
      loadEnv({
        OTPD_DATA_DIR: folder,
        OTPD_LISTEN: '127.0.0.1:0',
        OTPD_WEBHOOK_ALLOW: '127.0.0.1',
        OTPD_SEND_PER_MINUTE: '10000',
        OTPD_VERIFY_PER_MINUTE: '10000',
      }),
    )
    const account = {
      adminEmail: login.username,
      secrets: { ...config.secrets, adminPassword: login.password },
    }
    const server = await startServer(
      { ...config, ...account },
      { log: collectLog('json', 'info').log, version: '0' },
    )
    const client = await logIn(server.url)
    const app = await client.createApplication('test')
    if (kind === 'webhook')
      await client.call('POST', '/v1/webhooks', { appId: app.id, url: receiver.url, events: ['otp.sent'] })
    const post = (path: string, body: object) =>
      client.call<{ requestId: string; code: string }>('POST', `/v1/otp/${path}`, body, app.headers)
    const send = (index: number) => post('send', { phone: `+141555501${10 + index}` })

    // The first of each takes ways of its own, such as statements that are prepared.
    await send(most)
    await post('verify', pickCode(await send(most + 1)))
    const sent: Array<Awaited<ReturnType<typeof send>>> = []
    // One by one, because each run must commit them in as many transactions.
    if (kind === 'verify') for (let index = 0; index < most; index++) sent.push(await send(index))
    await client.call('GET', '/v1/logs')
    for (let index = 0; index < count; index++) {
      const code = sent[index]
      if (kind === 'log page') await client.call('GET', '/v1/logs')
      else if (code) await post('verify', pickCode(code))
      else await send(index)
      if (kind === 'webhook') await receiver.waitForCount(index + 3)
    }
    await server.stop()
    receiver.stop()
    rmSync(folder, { recursive: true, force: true })
  },
  60_000,
)

const pickCode = ({ requestId, code }: { requestId: string; code: string }) => ({ requestId, code })
