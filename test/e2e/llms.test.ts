import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeBlocks, commandLines, createReader, type Reader } from '../helpers/guide-blocks.ts'

// A backend made as a coding agent makes one: it knows the server's address and nothing else, reads /llms.txt, follows
// its links, and copies what it finds there.

let reader: Reader
let backend: Bun.Subprocess<'ignore', 'pipe', 'inherit'> | undefined

beforeAll(async () => void (reader = await createReader()))
afterAll(async () => {
  backend?.kill()
  await backend?.exited
  await reader.stop()
})

/** Reads `/llms.txt`, and all Markdown that it leads to. */
async function readEverything(): Promise<string[]> {
  const addresses = new Set([`${reader.server.url}/llms.txt`])
  const texts: string[] = []
  for (const address of addresses) {
    const text = await (await fetch(address)).text()
    texts.push(text)
    for (const [, link = ''] of text.matchAll(/\]\(([\w./-]+\.md)\)/g))
      addresses.add(new URL(link, address).href)
  }
  return texts
}

test('a backend made from /llms.txt alone verifies a phone on the first run', async () => {
  const texts = await readEverything()
  const guide = texts.find((text) => text.includes('\n// server.mjs\n')) ?? ''
  const [source = ''] = codeBlocks(guide, 'js')
  const [setUp = '', tryOut = ''] = codeBlocks(guide, 'sh')

  const login = `otpd login --setup-token-file ${reader.server.dataDir}/setup-token --email ada@example.com --password-stdin`
  await reader.type(login, { input: 'correct horse battery' })
  for (const line of commandLines(setUp)) await reader.type(line)
  writeFileSync(join(reader.folder, 'server.mjs'), source)
  const [command] = /node --env-file=\S+ server\.mjs/.exec(guide) ?? ['']
  backend = Bun.spawn(command.split(' '), {
    cwd: reader.folder,
    env: { PATH: process.env.PATH ?? '', PORT: '0' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const { value } = await backend.stdout.pipeThrough(new TextDecoderStream()).getReader().read()
  const url = `http://127.0.0.1:${/\d+/.exec(value ?? '')?.[0]}`

  const answers: unknown[] = []
  for (const line of commandLines(tryOut))
    answers.push(
      JSON.parse(await reader.type(line.replace('curl', 'curl -s').replace('http://127.0.0.1:3000', url))),
    )
  expect(answers).toEqual([{ sent: true }, { phone: '+14155550100' }])

  // The mistakes that the guide warns of: a wrong code, another session, a second use.
  const post = (path: string, body: object, cookie = '') =>
    fetch(url + path, { method: 'POST', headers: { cookie }, body: JSON.stringify(body) })
  const sent = await post('/login/send', { phone: '+14155550101' })
  const cookie = sent.headers.get('set-cookie')?.split(';')[0]
  const wrong = await post('/login/verify', { code: '000000' }, cookie)
  expect([wrong.status, await wrong.json()]).toEqual([400, { error: 'INVALID_CODE', attemptsRemaining: 4 }])
  expect(await (await post('/login/verify', { code: '424242' })).json()).toEqual({ error: 'SEND_FIRST' })
  expect(await (await post('/login/verify', { code: '424242' }, cookie)).json()).toEqual({
    phone: '+14155550101',
  })
  expect(await (await post('/login/verify', { code: '424242' }, cookie)).json()).toEqual({
    error: 'SEND_FIRST',
  })
})

test('the guide for coding agents leads to what else otpd does', async () => {
  const address = `${reader.server.url}/docs/agents.md`
  const guide = await (await fetch(address)).text()
  for (const name of [
    'ready-page',
    'payments',
    'proofs',
    'webhooks',
    'costs',
    'guard',
    'alerts',
    'providers',
  ]) {
    expect(guide).toContain(`](${name}.md)`)
    const linked = await fetch(new URL(`${name}.md`, address))
    expect([linked.status, linked.headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8'])
  }
})

test('the guide for coding agents has ten mistakes, and each call that it names', async () => {
  const guide = await (await fetch(`${reader.server.url}/docs/agents.md`)).text()
  expect([...guide.matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number))).toEqual([
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  ])
  const { paths } = JSON.parse(await (await fetch(`${reader.server.url}/v1/openapi.json`)).text())
  for (const [, path = ''] of guide.matchAll(/`POST (\/\S+)`/g)) expect(paths[path]).toHaveProperty('post')
})
