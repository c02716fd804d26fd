import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandPath, findCommand } from '../../cli/help.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { createProgram } from '../../cli/program.ts'
import { binaryPath, runBinary, runToEnd, startServer, type RunningServer } from '../helpers/binary.ts'
import { providersTable } from '../helpers/providers-table.ts'

const readme = await Bun.file(new URL('../../README.md', import.meta.url)).text()

/** Returns the commands in the first shell block below a heading, without comments. */
function commandsBelow(heading: string): string[] {
  const block = readme.slice(readme.indexOf(heading)).split('```sh\n')[1]?.split('```')[0] ?? ''
  return block
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => line.replace(/\s+#.*$/, '').trim())
    .filter((line) => line !== '')
}

/** Runs a line in a shell in which `otpd` is the compiled binary and uses the test's server. */
async function type(line: string, server: RunningServer, folder: string, input = '') {
  const command = line.replaceAll('http://127.0.0.1:8080', server.url)
  const { stdout, stderr, exitCode } = await runToEnd(['sh', '-c', command], {
    cwd: folder,
    env: {
      HOME: folder,
      PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`,
      OTPD_SERVER: server.url,
      OTPD_DATA_DIR: server.dataDir,
    },
    input,
  })
  expect({ line, exitCode, stderr }).toMatchObject({ line, exitCode: 0 })
  return stdout
}

const listFlags = (command: Command | null): (string | undefined)[] =>
  command === null ? ['--help'] : [...command.options.map(({ long }) => long), ...listFlags(command.parent)]

describe('the README', () => {
  let server: RunningServer
  const folder = mkdtempSync(join(tmpdir(), 'otpd-readme-'))
  beforeAll(async () => {
    mkdirSync(join(folder, 'bin'))
    symlinkSync(binaryPath, join(folder, 'bin', 'otpd'))
    server = await startServer()
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('shows commands that lead to the first verified code', async () => {
    const lines = commandsBelow('### The first verified code')
    expect(lines).toHaveLength(7)
    let requestId = ''
    let code = ''
    for (const line of lines) {
      if (line.startsWith('alias ')) continue
      const login = line.includes('login')
      const filled = line
        .replace('st_…', () => server.setupToken())
        .replace('otp_…', requestId)
        .replace('123456', code)
      const typed = login ? `${filled} --email ada@example.com --password-stdin` : filled
      const printed = await type(typed, server, folder, login ? 'correct horse battery' : '')
      requestId = /otp_[0-9a-z]{26}/.exec(printed)?.[0] ?? requestId
      code = /\s([0-9]{6})\s/.exec(printed)?.[1] ?? code
      if (line.includes('verify')) expect(printed).toContain('is verified')
    }
  })

  test('shows how a backend does the same', async () => {
    const printed = await type(commandsBelow('### The same from a backend').join('\n'), server, folder)
    const response: { data: Record<string, unknown> } = JSON.parse(printed)
    const shown: { data: Record<string, unknown> } = JSON.parse(
      readme.split('```json\n')[1]?.split('```')[0] ?? '',
    )
    expect(Object.keys(response.data)).toEqual(Object.keys(shown.data))
  })

  test('shows a valid configuration', async () => {
    const toml = readme.split('```toml\n')[1]?.split('```')[0] ?? ''
    const path = join(folder, 'otpd.toml')
    writeFileSync(path, toml)
    const checked = await runBinary(folder, ['config', 'check', '--config', path])
    expect(checked).toMatchObject({ exitCode: 0 })
    await runBinary(folder, [
      'admin',
      'set-plan',
      'ada@example.com',
      'team',
      '--data-dir',
      server.dataDir,
      '--config',
      path,
    ])
    const { data }: { data: { plan: string; limits: unknown } } = JSON.parse(
      await type('otpd api GET /v1/developer/me', server, folder),
    )
    expect(data.plan).toBe('team')
  })

  test('shows valid providers and texts, and every kind of provider', async () => {
    const secret = join(folder, 'secret')
    writeFileSync(secret, '0123456789abcdef0123456789abcdef')
    for (const [, block] of readme.matchAll(/```toml\n(.*?)```/gs)) {
      const path = join(folder, 'shown.toml')
      writeFileSync(path, (block ?? '').replace('/run/secrets/twilio', secret))
      const env = { VONAGE_SECRET: 'abcdefgh12345678', GATEWAY_PASSWORD: 'horse' }
      const { exitCode, stderr } = await runBinary(folder, ['config', 'check', '--config', path], { env })
      expect({ block, exitCode, stderr }).toMatchObject({ block, exitCode: 0 })
    }
    const plain = (text: string) => text.replaceAll(/ +/g, ' ')
    for (const row of providersTable()) if (!row.includes('---')) expect(plain(readme)).toContain(row)
  })

  test('shows a webhook signature that verifies', async () => {
    const snippet = readme.split('```js\n')[1]?.split('```')[0] ?? ''
    const vector = {
      secret: 'whsec_0123456789abcdef0123456789abcdef0123456789abcdef',
      id: 'msg_1',
      timestamp: '1700000000',
      body: '{"a":1}',
    }
    const path = join(folder, 'webhook.mjs')
    const constants = Object.entries(vector).map(([name, value]) => `const ${name} = '${value}'`)
    writeFileSync(path, [...constants, snippet, 'export { expected }'].join('\n'))
    const { expected }: { expected: string } = await import(path)
    expect(expected).toBe('YForqA5y0HLhU/b+46qmStvR80u6DaHHtk9wY/o80/Y=')
  })

  test('names only commands and flags that exist', () => {
    const spans = [...readme.matchAll(/`(otpd(?: [^`]*)?)`/g)].map(([, line]) => line ?? '')
    expect(spans.length).toBeGreaterThan(30)
    for (const line of new Set(spans)) {
      const words = line.split(' ').slice(1)
      // Values of flags and placeholders are not commands.
      const named = words.filter((word, i) => /^[a-z][a-z-]*$/.test(word) && !words[i - 1]?.startsWith('--'))
      const command = findCommand(
        createProgram(processIo(), async () => {}, named[0]),
        named,
      )
      const path = commandPath(command)
      if (command.commands.length > 0) expect([line, path]).toEqual([line, line.replace(/ (…|--).*/, '')])
      const knownFlags = listFlags(command)
      for (const word of words)
        if (word.startsWith('--')) expect([line, knownFlags]).toEqual([line, expect.arrayContaining([word])])
    }
  })

  test('links only to headings that exist', () => {
    const slugs = [...readme.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
      (title ?? '')
        .toLowerCase()
        .replaceAll(/[^a-z0-9 -]/g, '')
        .replaceAll(' ', '-'),
    )
    const links = [...readme.matchAll(/\]\(#([^)]*)\)/g)].map(([, slug]) => slug)
    expect(links.length).toBeGreaterThan(10)
    for (const link of links) expect(slugs).toContain(link ?? '')
  })

  test('names only files that exist', () => {
    const named = [...readme.matchAll(/`((?:src|cli|test|migrations)\/[\w./-]*)`/g)].map(
      (match) => match[1] ?? '',
    )
    expect(named.length).toBeGreaterThan(5)
    for (const path of named) {
      const url = new URL(`../../${path}`, import.meta.url)
      expect([path, existsSync(url)]).toEqual([path, true])
    }
  })
})
