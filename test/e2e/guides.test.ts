import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig, processInput } from '../../src/config/config.ts'
import { binaryPath, runBinary, runToEnd } from '../helpers/binary.ts'
import {
  codeBlocks,
  commandLines,
  createReader,
  expectCommandsExist,
  parseCommands,
  readDocument,
  type Reader,
} from '../helpers/guide-blocks.ts'
import { openScreen } from '../helpers/screen.ts'

const root = join(import.meta.dir, '../..')
const names = readdirSync(join(root, 'src/docs')).filter((file) => file.endsWith('.md'))
const guide = (name: string) => readDocument(`src/docs/${name}.md`)

let reader: Reader
beforeAll(async () => void (reader = await createReader()))
afterAll(() => reader.stop())

test('the quick start leads to the first verified code, and to a call of a backend', async () => {
  const quickstart = guide('quickstart')
  await reader.verifyFirstCode(
    commandLines(codeBlocks(quickstart, 'sh', '## The first verified code').join('')),
  )
  const call = commandLines(codeBlocks(quickstart, 'sh', '## The same from a backend').join(''))
  const response: { data: Record<string, unknown> } = JSON.parse(await reader.type(call.join('\n')))
  const shown: { data: Record<string, unknown> } = JSON.parse(codeBlocks(quickstart, 'json').join(''))
  expect(Object.keys(response.data)).toEqual(Object.keys(shown.data))
})

describe('the samples of sending and verifying', () => {
  const languages = [
    ['sh', 'curl', 'sh', ['sh', 'sample.sh']],
    ['js', 'bun', 'mjs', [process.execPath, 'sample.mjs']],
    ['python', 'python3', 'py', ['python3', 'sample.py']],
    ['go', 'go', 'go', ['go', 'run', 'sample.go']],
  ] as const

  for (const [language, program, ending, command] of languages)
    test.skipIf(Bun.which(program) === null && program !== 'bun')(
      `work in ${language}`,
      async () => {
        const environment = await Bun.file(join(reader.folder, '.env.otpd')).text()
        const credentials = Object.fromEntries(
          [...environment.matchAll(/^(\w+)='?([^'\n]*)'?$/gm)].map(([, name = '', value = '']) => [
            name,
            value,
          ]),
        )
        const run = async (heading: string, env: Record<string, string> = {}) => {
          const [sample = ''] = codeBlocks(guide('sending'), language, heading)
          writeFileSync(
            join(reader.folder, `sample.${ending}`),
            sample.replaceAll('http://127.0.0.1:8080', reader.server.url),
          )
          const { stdout, stderr } = await runToEnd([...command], {
            cwd: reader.folder,
            env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...credentials, ...env },
          })
          return stdout + (stdout === '' ? stderr : '')
        }
        // All send with one idempotency key: the same request each time.
        const sent = await run('## Send')
        expect(sent).toMatch(/otp_[0-9a-z]{26}/)
        expect(await run('## Send', { OTPD_API_KEY: 'wrong' })).toMatch(/^(401 )?.*UNAUTHENTICATED/)
        const [REQUEST_ID = ''] = /otp_[0-9a-z]{26}/.exec(sent) ?? []
        const inbox: { data: { requestId: string; code: string }[] } = JSON.parse(
          await reader.type('otpd inbox --json'),
        )
        const CODE = inbox.data.find((item) => item.requestId === REQUEST_ID)?.code ?? '000000'
        // The first language verifies it; the others are told so.
        expect(await run('## Verify', { REQUEST_ID, CODE })).toMatch(/verified|ALREADY_VERIFIED/)
      },
      120_000,
    )
})

test('the commands for a test suite start a server of its own, which sends more than the free plan', async () => {
  const suite = codeBlocks(guide('testing'), 'sh', '## In a test suite').join('')
  const probe = Bun.serve({ port: 0, fetch: () => new Response() })
  const port = probe.port
  await probe.stop()
  const env = { OTPD_SERVER: `http://127.0.0.1:${port}`, OTPD_LISTEN: `127.0.0.1:${port}`, OTPD_DATA_DIR: '' }
  const sends = 'for i in 1 2 3 4 5 6; do otpd otp send +14155550100 --env-file .env.test -q; done'
  const home = 'mkdir suite; cd suite; export HOME=$PWD'
  const printed = await reader.type(['set -e', home, `${suite}trap "kill $!" EXIT`, sends].join('\n'), {
    env,
  })
  expect(printed.match(/^otp_/gm)).toHaveLength(6)
})

test('the configurations are valid, and the plan can be used', async () => {
  const secret = join(reader.folder, 'secret')
  writeFileSync(secret, '0123456789abcdef0123456789abcdef', { mode: 0o600 })
  const authority = join(reader.folder, 'root.pem')
  writeFileSync(authority, '-----BEGIN CERTIFICATE-----\n')
  const vonageKey = join(reader.folder, 'vonage-private.key')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(vonageKey, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  mkdirSync(join(reader.folder, 'secrets'))
  for (const name of ['aws-notify-secretAccessKey', 'phone-headers'])
    writeFileSync(join(reader.folder, 'secrets', name), 'Authorization: {{basic}}\n', { mode: 0o600 })
  writeFileSync(join(reader.folder, 'main-prices.csv'), 'US,0.0079\n')
  const blocks = names.flatMap((name) => codeBlocks(readDocument(`src/docs/${name}`), 'toml'))
  expect(blocks.length).toBeGreaterThan(3)
  const path = join(reader.folder, 'shown.toml')
  for (const block of blocks) {
    writeFileSync(
      path,
      block
        .replace(/\/run\/secrets\/[\w-]+/g, secret)
        .replace('/etc/otpd/vonage-private.key', vonageKey)
        .replace('/etc/otpd/corp-root.pem', authority),
    )
    const env = {
      VONAGE_SECRET: 'abcdefgh12345678',
      GATEWAY_PASSWORD: 'horse',
      OTPD_SECRET_S3: 'x',
      SMS_GATEWAY_PASSWORD: 'y',
    }
    // In this process: there are fifty of them.
    const { config, problems } = loadConfig(
      processInput({ config: path }, { env, workingDirectory: reader.folder }),
    )
    expect({ block, problems, isValid: config !== null }).toEqual({ block, problems: [], isValid: true })
  }
  writeFileSync(path, codeBlocks(guide('configuration'), 'toml').join(''))
  await reader.type(`otpd admin set-plan ada@example.com team --config ${path}`)
  const { data }: { data: { plan: string } } = JSON.parse(await reader.type('otpd api GET /v1/developer/me'))
  expect(data.plan).toBe('team')
})

describe('the samples of verifying a webhook', () => {
  const secret = 'whsec_0123456789abcdef0123456789abcdef0123456789abcdef'
  const body = '{"a":1}'
  const id = 'evt_1'
  const timestamp = String(Math.floor(Date.now() / 1000))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = new Bun.CryptoHasher('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  const sample = (language: string) => codeBlocks(guide('webhooks'), language)[0] ?? ''

  test('accept what otpd signs and refuse anything else, in JavaScript', async () => {
    const path = join(reader.folder, 'webhook.mjs')
    writeFileSync(path, sample('js'))
    const { verifyWebhook }: { verifyWebhook: (...args: unknown[]) => boolean } = await import(path)
    expect(verifyWebhook(secret, headers, body)).toBe(true)
    expect(verifyWebhook(secret, headers, `${body} `)).toBe(false)
    for (const timestamp of ['1700000000', 'soon', ''])
      expect(verifyWebhook(secret, { ...headers, 'webhook-timestamp': timestamp }, body)).toBe(false)
    expect(verifyWebhook(secret, {}, body)).toBe(false)
    expect(verifyWebhook(secret, { ...headers, 'webhook-signature': undefined }, body)).toBe(false)
  })

  test.skipIf(Bun.which('python3') === null)('the same in Python', async () => {
    const check = `${sample('python')}
import json, sys
headers = json.loads(sys.argv[1])
print(verify_webhook(${JSON.stringify(secret)}, headers, b'${body}'), verify_webhook(${JSON.stringify(secret)}, headers, b'x'))
for changes in [{'webhook-timestamp': 'soon'}, {'webhook-signature': ''}]:
    print(verify_webhook(${JSON.stringify(secret)}, {**headers, **changes}, b'${body}'))
print(verify_webhook(${JSON.stringify(secret)}, {}, b'${body}'))`
    const { stdout, stderr } = await runToEnd(['python3', '-c', check, JSON.stringify(headers)], {
      env: { PATH: process.env.PATH ?? '' },
    })
    expect([stdout, stderr]).toEqual(['True False\nFalse\nFalse\nFalse\n', ''])
  })

  test.skipIf(Bun.which('go') === null)(
    'the same in Go',
    async () => {
      const folder = join(reader.folder, 'hook')
      mkdirSync(join(folder, 'webhook'), { recursive: true })
      writeFileSync(join(folder, 'go.mod'), 'module example.com/hook\n\ngo 1.20\n')
      writeFileSync(join(folder, 'webhook/webhook.go'), sample('go'))
      const set = Object.entries(headers).map(
        ([name, value]) => `h.Set(${JSON.stringify(name)}, ${JSON.stringify(value)})`,
      )
      writeFileSync(
        join(folder, 'main.go'),
        `package main

import (
	"fmt"
	"net/http"

	"example.com/hook/webhook"
)

func main() {
	h := http.Header{}
	${set.join('\n\t')}
	secret := ${JSON.stringify(secret)}
	fmt.Println(webhook.Verify(secret, h, []byte(${JSON.stringify(body)})), webhook.Verify(secret, h, []byte("x")))
}
`,
      )
      const { stdout, stderr } = await runToEnd(['go', 'run', '.'], {
        cwd: folder,
        env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', GOFLAGS: '-mod=mod' },
      })
      expect([stdout, stderr]).toEqual(['true false\n', ''])
    },
    120_000,
  )
})

test('a command that lacks an argument is found, also inside another one', async () => {
  const { faults } = await parseCommands(
    '```sh\nid=$(otpd otp send -q) && sudo otpd webhook create > x\n```\n',
  )
  expect(faults).toHaveLength(2)
})

describe.each(names)('%s', (name) => {
  const text = readDocument(`src/docs/${name}`)

  test('names only commands and flags that exist', () => {
    expectCommandsExist(text)
  })

  test('has only commands that are complete as they are written', async () => {
    expect((await parseCommands(text)).faults).toEqual([])
  })

  test('names only files that exist', () => {
    const named = [...text.matchAll(/`((?:src|cli|test|migrations)\/[\w./-]*)`/g)].map(
      ([, path = '']) => path,
    )
    for (const path of named) expect([path, existsSync(join(root, path))]).toEqual([path, true])
  })
})

describe('otpd docs on a terminal', () => {
  const open = (PAGER: string) =>
    openScreen(
      [binaryPath, 'docs', 'guard'],
      { HOME: reader.folder, PATH: process.env.PATH ?? '', PAGER },
      { columns: 80, rows: 24 },
    )

  test.each([
    ['shows a guide in the pager', 'sed s/SMS/PAGED/'],
    ['prints it if the pager is missing', 'no-such-pager'],
    ['prints it without a pager', ''],
  ])('%s', async (_, pager) => {
    const screen = open(pager)
    expect(await screen.exited).toBe(0)
    expect(screen.written()).toContain(pager.startsWith('sed') ? 'Guard against PAGED' : 'Guard against SMS')
    await screen.close()
  })

  test('ends quietly if the pager is left early', async () => {
    const screen = open('head -1')
    expect(await screen.exited).toBe(0)
    await screen.close()
  })
})

test('the executable shows the guides on the terminal, and searches them, without a server', async () => {
  const list = await runBinary(reader.folder, ['docs'])
  for (const name of names) expect(list.stdout).toContain(name.slice(0, -3))
  const shown = await runBinary(reader.folder, ['docs', 'errors'])
  expect(shown.stdout).toContain('RATE_LIMITED')
  expect(shown.stdout).not.toMatch(/^```|\]\(|<!--/m)
  const markdown = await runBinary(reader.folder, ['docs', 'errors', '--format', 'md'])
  expect(markdown).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: expect.stringMatching(/^# Errors\n[^]*\n```json\n/),
  })
  const index = await runBinary(reader.folder, ['docs', '--format', 'md'])
  expect(index.stdout).toMatch(/^# otpd\n[^]*\n- \[Errors\]\(docs\/errors\.md\): /)
  for (const flags of [['--json'], ['--search', 'resend']])
    expect(await runBinary(reader.folder, ['docs', '--format', 'md', ...flags])).toMatchObject({
      exitCode: 2,
      stdout: '',
    })
  for (const words of ['resend', '429', 'Twilio']) {
    const found = await runBinary(reader.folder, ['docs', '--search', words])
    expect({ words, ...found }).toMatchObject({ words, exitCode: 0 })
  }
  expect(await runBinary(reader.folder, ['docs', 'webhok'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/^Error: Unknown guide 'webhok'\.\n.*Did you mean: otpd docs webhooks\n/),
  })
})
