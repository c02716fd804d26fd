import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startTwilioShop } from '../helpers/twilio-shop.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'
import { waitFor } from '../helpers/external-program.ts'
import { buildGo, post, start, waitForAnswer } from './go-program.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, run } from './tools.ts'

const version = 'v1.3.1'

/** The recipe of the guide. `OTPD_TEST_KRATOS` is the executable; without it, it is built from the Go module. */
export const kratosCheck: AcceptCheck = {
  name: 'kratos',
  title: `Ory Kratos ${version} with codes that otpd delivers`,
  needs: ['go'],
  run: (print) =>
    inFolder(async (folder) => {
      const kratos = process.env['OTPD_TEST_KRATOS'] ?? (await build(folder))
      const shop = await startTwilioShop()
      const [publicPort, adminPort] = [await findUnusedPort(), await findUnusedPort()]
      const [publicUrl, adminUrl] = [`http://127.0.0.1:${publicPort}`, `http://127.0.0.1:${adminPort}`]
      cpSync(join(import.meta.dir, 'kratos'), folder, { recursive: true })
      const channel = {
        id: 'sms',
        type: 'http',
        request_config: {
          url: `${shop.server.url}/v1/otp/deliver`,
          method: 'POST',
          body: `file://${folder}/otpd.jsonnet`,
          headers: { ...shop.live.headers, 'content-type': undefined, 'Content-Type': 'application/json' },
        },
      }
      const config = {
        dsn: 'memory',
        serve: {
          public: { host: '127.0.0.1', port: publicPort, base_url: publicUrl },
          admin: { host: '127.0.0.1', port: adminPort },
        },
        selfservice: {
          default_browser_return_url: publicUrl,
          methods: { code: { enabled: true, passwordless_enabled: true } },
        },
        identity: {
          default_schema_id: 'default',
          schemas: [{ id: 'default', url: `file://${folder}/identity.schema.json` }],
        },
        courier: { channels: [channel] },
      }
      // JSON is YAML.
      writeFileSync(join(folder, 'kratos.yml'), JSON.stringify(config))
      const command = [kratos, 'serve', '-c', 'kratos.yml', '--dev', '--watch-courier']
      const stop = start(folder, command, { HOME: folder, PATH: process.env['PATH'] ?? '' })
      try {
        await waitForAnswer(`${publicUrl}/health/ready`)
        const phone = '+14155550132'
        const identity = { schema_id: 'default', traits: { phone } }
        const { status } = await post(`${adminUrl}/admin/identities`, identity)
        if (status !== 201) throw new Error(`creating an identity gave ${status}`)
        const flow = (await (await fetch(`${publicUrl}/self-service/login/api`)).json()) as { id: string }
        const login = (body: object) =>
          post(`${publicUrl}/self-service/login?flow=${flow.id}`, {
            method: 'code',
            identifier: phone,
            ...body,
          })
        await login({})
        const code = await waitFor('code', () => shop.codeOf(phone) || undefined)
        const wrong = await login({ code: shop.wrongCodeOf(phone) })
        const right = await login({ code })
        if (wrong.status !== 400 || typeof right.json['session_token'] !== 'string')
          throw new Error(`a wrong code gave ${wrong.status}, the right one ${JSON.stringify(right)}`)
        print('sent, checked and signed in')
      } finally {
        await stop()
        await shop.stop()
      }
    }),
}

async function build(folder: string): Promise<string> {
  const downloaded = await run(folder, ['go', 'mod', 'download', '-json', `github.com/ory/kratos@${version}`])
  const { Dir: module }: { Dir: string } = JSON.parse(downloaded)
  const source = join(folder, 'source')
  await run(folder, ['cp', '-r', '--no-preserve=mode', module, source])
  return buildGo(source, join(folder, 'kratos.bin'), ['-tags', 'sqlite'])
}
