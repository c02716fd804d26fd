import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Otpd, WebhookVerifyError } from '../../src/client/index.ts'
import { verifyWebhook } from '../../src/client/webhooks.ts'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { startReceiver } from '../helpers/webhook-receiver.ts'
import { runToEnd } from '../helpers/run-to-end.ts'

let server: RunningServer
let folder: string
let env: Record<string, string>
const root = join(import.meta.dir, '../..')

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-client-'))
  const library = join(folder, 'node_modules/otpd')
  mkdirSync(library, { recursive: true })
  await runToEnd([process.execPath, join(root, 'cli/build-client.ts'), '--outdir', library])
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
  const limits = { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0' }
  server = await startServer({ env: { ...limits, OTPD_WEBHOOK_ALLOW: '127.0.0.1' } })
  const login = ['login', '--setup-token', server.setupToken(), '--email', 'a@b.example', '--password-stdin']
  await server.otpd(login, { input: 'correct horse battery' })
  await server.otpd(['project', 'create', 'shop'])
  await server.otpd(['app', 'create', 'web', '-p', 'shop', '-e', 'test', '--env-file', 'web.env'])
  const { stdout } = await server.otpd(['app', 'env', 'web', '--env-file', 'web.env', '--json'])
  env = JSON.parse(stdout).data
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

const program = `
import { Otpd, OtpdError, GoneError } from 'otpd/client'
const otp = new Otpd()
const phone = '+14155550132'
const sent = await otp.send({ phone })
const said = []
const { verified, ...wrong } = await otp.check({ phone, code: '000000' })
said.push(verified, wrong.reason, wrong.attemptsRemaining)
const right = await otp.check({ requestId: sent.requestId, code: '424242' })
said.push(right.verified, right.requestId === sent.requestId)
said.push((await otp.check({ requestId: sent.requestId, code: '424242' })).reason)
said.push((await otp.check({ phone, code: '424242' })).reason)
const other = await otp.send({ phone: '+14155550133' })
said.push((await otp.cancel({ phone: '+14155550133' })).status, (await otp.get(other.requestId)).status)
const delivered = await otp.deliver({ phone, code: '907155' })
said.push(delivered.status, (await otp.deliver({ phone, code: '907155' })).id === delivered.id)
try { await otp.resend({ requestId: other.requestId }) } catch (error) { said.push(error.name, error.code, error.status, error instanceof GoneError, error instanceof OtpdError) }
try { await otp.send({ phone: '+1' }) } catch (error) { said.push(error.name, error.code, error.requestId.slice(0, 4)) }
try { await new Otpd({ apiKey: 'x' }).send({ phone }) } catch (error) { said.push(error.name, JSON.stringify(error).includes(process.env.OTPD_CLIENT_SECRET)) }
try { await new Otpd({ url: 'http://127.0.0.1:1', maxRetries: 0 }).get('x') } catch (error) { said.push(error.name) }
said.push(JSON.stringify(otp).includes('secret'))
console.log(JSON.stringify(said))
`

describe('otpd/client', () => {
  test.each(['node', process.execPath])('works under %s', async (runtime) => {
    writeFileSync(join(folder, 'program.mjs'), program)
    const output = await runToEnd([runtime, 'program.mjs'], { cwd: folder, env })
    expect(JSON.parse(output)).toEqual([
      false,
      'wrong',
      4,
      true,
      true,
      'used',
      'unknown',
      'canceled',
      'canceled',
      'sent',
      true,
      'GoneError',
      'OTP_CANCELED',
      410,
      true,
      true,
      'InvalidRequestError',
      'INVALID_PHONE_NUMBER',
      'req_',
      'AuthenticationError',
      false,
      'ConnectionError',
      false,
    ])
  })

  test('verifies the webhooks of the server, and no others', async () => {
    const receiver = await startReceiver()
    const url = `${receiver.url}/hook`
    const create = ['webhook', 'create', '--url', url, '--app', 'web', '--events', '*,message.sent']
    expect((await server.otpd(create)).exitCode).toBe(0)
    const otp = new Otpd({
      url: server.url,
      clientId: env['OTPD_CLIENT_ID'],
      clientSecret: env['OTPD_CLIENT_SECRET'],
      apiKey: env['OTPD_API_KEY'],
    })
    const { requestId } = await otp.send({ phone: '+14155550166' })
    await otp.deliver({ phone: '+14155550166', code: '1234' })
    await receiver.waitForCount(2)
    receiver.stop()
    const secret = env['OTPD_WEBHOOK_SECRET'] ?? ''
    const { verify } = otp.webhooks
    const events = await Promise.all(
      receiver.received.map(({ body, headers }) => verify(body, headers, secret)),
    )
    const sent = events.find(({ type }) => type === 'otp.sent')
    expect(sent).toMatchObject({ data: { requestId, phone: '+14155550166', status: 'pending' } })
    expect(events.map(({ type }) => type).toSorted()).toEqual(['message.sent', 'otp.sent'])
    const [received] = receiver.received
    if (!received) throw new Error('no webhook')
    const { body, headers } = received
    expect(await verify(body, new Headers(headers), secret)).toMatchObject({ id: headers['webhook-id'] })
    const signature = headers['webhook-signature'] ?? ''
    const among = { ...headers, 'webhook-signature': `v1,AAAA v2,x ${signature}` }
    expect(await verify(body, among, secret)).toMatchObject({ id: headers['webhook-id'] })
    const old = String(Number(headers['webhook-timestamp']) - 301)
    const otherSecret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
    for (const call of [
      () => verify(`${body} `, headers, secret),
      () => verify(body, { ...headers, 'webhook-id': 'msg_1' }, secret),
      () => verify(body, { ...headers, 'webhook-timestamp': old }, secret),
      () => verify(body, { ...headers, 'webhook-timestamp': '' }, secret),
      () => verify(body, { ...headers, 'webhook-signature': signature.replace('v1,', 'v2,') }, secret),
      () => verify(body, { ...headers, 'webhook-signature': 'v1,' }, secret),
      () => verify(body, {}, secret),
      () => verify(body, headers, otherSecret),
    ])
      await expect(call()).rejects.toThrow(WebhookVerifyError)
    expect(verify(body, headers, 'whsec_*')).rejects.toThrow('expected whsec_')
  })

  test('refuses a webhook that is genuine and old', async () => {
    const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
    const at = (seconds: number) => {
      const timestamp = String(Math.floor(Date.now() / 1000) + seconds)
      const mac = new Bun.CryptoHasher('sha256', Buffer.alloc(32, 1)).update(`msg_1.${timestamp}.{}`)
      return {
        'webhook-id': 'msg_1',
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${mac.digest('base64')}`,
      }
    }
    for (const seconds of [-290, 0, 290])
      expect(await verifyWebhook('{}', at(seconds), secret)).toEqual({} as never)
    for (const seconds of [-310, 310])
      expect(verifyWebhook('{}', at(seconds), secret)).rejects.toThrow('older')
  })

  test('has types that another project can use', async () => {
    const use = `import { Otpd, type OtpCheck } from 'otpd/client'
const check: OtpCheck = await new Otpd().check({ phone: '+14155550132', code: '1' })
export const reason: string = check.verified ? check.verifiedAt : check.reason
// @ts-expect-error: a target is needed
void new Otpd().verify({ code: '1' })
`
    writeFileSync(join(folder, 'use.ts'), use)
    const options = {
      strict: true,
      noEmit: true,
      module: 'NodeNext',
      target: 'ESNext',
      lib: ['ESNext', 'DOM', 'DOM.Iterable'],
      types: [],
    }
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, files: ['use.ts'] }),
    )
    await runToEnd([process.execPath, join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'], {
      cwd: folder,
    })
  })

  test('has at most 8 KB when it is minified', async () => {
    const built = await Bun.build({
      entrypoints: [join(root, 'src/client/index.ts')],
      minify: true,
      target: 'browser',
    })
    expect((await built.outputs[0]?.text())?.length).toBeLessThanOrEqual(8 * 1024)
  })
})
