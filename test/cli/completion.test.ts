import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runToEnd } from '../helpers/binary.ts'
import { createHome, createScriptedServer, pageResponse, sampleProject } from './cli-fixture.ts'

const home = createHome()
const scripts: Record<string, string> = {}

beforeAll(async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const result = await home.otpd(['completion', shell])
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    scripts[shell] = result.stdout
    writeFileSync(join(home.directory, `otpd.${shell}`), result.stdout)
  }
})
afterAll(home.remove)

const runInShell = (shell: string, text: string) =>
  runToEnd([shell, '-c', text], {
    cwd: home.directory,
    env: { PATH: `${home.directory}:${process.env.PATH ?? ''}`, HOME: home.directory },
  })

/** Returns what bash offers to complete the last of these words. */
const completionsFor = (...words: string[]) => complete(words.join(' '), words)

/** As bash calls it by default, with words that are split at colons and equals signs. */
const splitCompletionsFor = (line: string) =>
  complete(line, line.split(/ +|(?<=[:=])(?![:=])|(?<![:=])(?=[:=])/))

async function complete(line: string, words: string[]) {
  const quoted = ['otpd', ...words].map((word) => `'${word}'`).join(' ')
  const result = await runInShell(
    'bash',
    `set -u; . ./otpd.bash; COMP_LINE='otpd ${line}'; COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _otpd; printf '%s\\n' "\${COMPREPLY[@]-}"`,
  )
  expect(result).toMatchObject({ exitCode: 0, stderr: '' })
  return result.stdout.split('\n').filter(Boolean)
}

/** Puts a program in the place of otpd that answers one command. */
const answerOnly = (command: string, ...words: string[]) =>
  writeFileSync(
    join(home.directory, 'otpd'),
    `#!/bin/sh\n[ "$*" = "${command}" ] && printf '%s\\n' ${words.join(' ')}\n`,
    { mode: 0o755 },
  )

/** Flags that name a server, and with which the names are asked for. */
const serverFlags: [given: string, asked: string][] = [
  ['--server http://127.0.0.1:1', '--server http://127.0.0.1:1'],
  ['--server=http://127.0.0.1:1', '--server http://127.0.0.1:1'],
  ['--context staging', '--context staging'],
]

describe('bash', () => {
  test('completes commands, and subcommands of an alias too', async () => {
    expect(await completionsFor('pro')).toContain('project')
    expect((await completionsFor('')).toSorted()).toEqual(
      expect.arrayContaining(['admin', 'backup', 'serve']),
    )
    expect(await completionsFor('project', 'c')).toEqual(['create'])
    expect(await completionsFor('project', 'ls', '--li')).toEqual(['--limit'])
  })

  test('completes the flags of the command and the global flags', async () => {
    expect(await completionsFor('app', 'create', '--en')).toEqual(['--env', '--env-file'])
    expect(await completionsFor('app', 'create', '--js')).toEqual(['--json'])
    expect(await completionsFor('--server', 'http://127.0.0.1:1', 'app', 'cr')).toEqual(['create'])
  })

  test('asks the server for names, and offers no files for them', async () => {
    writeFileSync(join(home.directory, 'web-page.html'), '')
    writeFileSync(
      join(home.directory, 'otpd'),
      '#!/bin/sh\n[ "$*" = "__complete app" ] && printf "web\\nshop\\n"\n',
      { mode: 0o755 },
    )
    expect(await completionsFor('app', 'get', 'we')).toEqual(['web'])
    expect(await completionsFor('otp', 'list', '--app', '')).toEqual(['web', 'shop'])
    expect(await completionsFor('rotate', 'w')).toEqual(['webhook-secret', 'web'])
    expect(await completionsFor('webhook', 'get', '')).toEqual([])
    expect(await completionsFor('otp', 'send', '')).toEqual([])
    expect(await completionsFor('logs', '--type', 'guard')).toEqual(['guard.alert', 'guard.flagged'])
  })

  test.each(serverFlags)('asks the server that the line names by %s', async (given, asked) => {
    answerOnly(`__complete app ${asked}`, 'web')
    expect(await completionsFor(...given.split(' '), 'app', 'get', '')).toEqual(['web'])
    expect(await completionsFor('otp', 'list', ...given.split(' '), '--app', '')).toEqual(['web'])
  })

  test('completes guides, contexts, providers and countries without a server', async () => {
    const words = (kind: string) => home.otpd(['__complete', kind])
    const countries = (await words('country')).stdout.trim().split('\n')
    expect(countries.length).toBeGreaterThan(200)
    expect(countries).toContain('GB')
    expect(countries).toEqual(countries.toSorted())
    expect((await words('guide')).stdout).toContain('quickstart\n')
    await home.otpd(['context', 'add', 'staging', 'https://otp.example.com'])
    expect((await words('context')).stdout).toBe('staging\n')
    expect((await words('provider')).exitCode).toBe(0)
  })

  test('completes the rules of the guard by what they concern, by ids where several concern the same', async () => {
    const fresh = createHome()
    const rule = (id: string, value: string) => ({ id, effect: 'deny', target: 'prefix', value, appId: null })
    const server = createScriptedServer(() =>
      pageResponse(
        rule('rul_1', '+882'),
        rule('rul_2', '203.0.113.0/24'),
        rule('rul_3', 'GB'),
        rule('rul_4', 'GB'),
      ),
    )
    const env = { OTPD_SERVER: server.url, OTPD_TOKEN: 'token' }
    const { stdout } = await fresh.otpd(['__complete', 'rule'], { env })
    expect(stdout).toBe('+882\n203.0.113.0/24\nrul_3\nrul_4\n')
    void server.stop()
    fresh.remove()
    answerOnly('__complete rule', '+882', 'rul_3')
    expect(await completionsFor('guard', 'remove', '')).toEqual(['+882', 'rul_3'])
  })

  test('completes backups by name or as a file', async () => {
    const name = 'otpd-2026-11-20T08-00-00-000Z.db'
    answerOnly('__complete backup', 'latest', name)
    for (const command of ['backup verify', 'restore']) {
      expect(await completionsFor(...command.split(' '), '')).toEqual(
        expect.arrayContaining(['latest', name]),
      )
      expect(await completionsFor(...command.split(' '), 'otpd.f')).toEqual(['otpd.fish'])
    }
    expect(await home.otpd(['__complete', 'backup'])).toMatchObject({ exitCode: 0, stdout: '' })
  })

  test('completes with an API token alone, and remembers the answer for ten seconds', async () => {
    const fresh = createHome()
    const server = createScriptedServer(() => pageResponse(sampleProject()))
    const env = { OTPD_SERVER: server.url, OTPD_TOKEN: 'token' }
    for (let count = 0; count < 2; count++)
      expect((await fresh.otpd(['__complete', 'project'], { env })).stdout).toBe('storefront\n')
    expect(server.requests).toHaveLength(1)
    fresh.clock.nowMs += 10_000
    await fresh.otpd(['__complete', 'project'], { env })
    expect(server.requests).toHaveLength(2)
    void server.stop()
    fresh.remove()
  })

  test('completes ids where a name is that of several', async () => {
    const fresh = createHome()
    const projects = ['prj_1', 'prj_2', 'prj_3'].map((id) => sampleProject({ id, name: 'shop' }))
    const server = createScriptedServer(() => pageResponse(sampleProject(), ...projects))
    const env = { OTPD_SERVER: server.url, OTPD_TOKEN: 'token' }
    const { stdout } = await fresh.otpd(['__complete', 'project'], { env })
    expect(stdout).toBe('storefront\nprj_1\nprj_2\nprj_3\n')
    void server.stop()
    fresh.remove()
  })

  test.each([
    'otp send +1 --country',
    'analytics --country',
    'guard allow --country',
    'app update web --default-country',
    'app update web --countries',
  ])('completes countries after %s', async (line) => {
    const script = '#!/bin/sh\n[ "$*" = "__complete country" ] && printf "DE\nGB\nGR\n"\n'
    writeFileSync(join(home.directory, 'otpd'), script, { mode: 0o755 })
    expect(await completionsFor(...line.split(' '), 'G')).toEqual(['GB', 'GR'])
  })

  test('completes each of several values that commas join', async () => {
    expect(await completionsFor('logs', '--type', 'otp.sent,otp.ver')).toEqual(['otp.sent,otp.verified'])
    expect(await completionsFor('webhook', 'create', '--events', '*,otp.exp')).toEqual(['*,otp.expired'])
    answerOnly('__complete country', 'DE', 'GB', 'GR')
    const countries = await completionsFor('app', 'update', 'web', '--countries', 'DE,FR,G')
    expect(countries).toEqual(['DE,FR,GB', 'DE,FR,GR'])
    expect(await completionsFor('otp', 'send', '+1', '--country', 'DE,G')).toEqual([])
  })

  test('completes URLs and values behind an equals sign, at which bash splits words', async () => {
    answerOnly('__complete webhook', 'whk_1', 'https://a.example/hook', 'https://b.example:8443/hook')
    expect(await splitCompletionsFor('webhook get https:')).toEqual([
      '//a.example/hook',
      '//b.example:8443/hook',
    ])
    expect(await splitCompletionsFor('webhook get https://b')).toEqual(['//b.example:8443/hook'])
    expect(await splitCompletionsFor('webhook get https://b.example:8')).toEqual(['8443/hook'])
    expect(await completionsFor('webhook', 'get', 'https://a')).toEqual(['https://a.example/hook'])
    expect(await splitCompletionsFor('app create web --env=')).toEqual(['live', 'test'])
    expect(await splitCompletionsFor('app create web --env=l')).toEqual(['live'])
    expect(await completionsFor('app', 'create', 'web', '--env=l')).toEqual(['--env=live'])
    const joined = '--events=otp.sent,otp.ver'
    expect(await splitCompletionsFor(`webhook create ${joined}`)).toEqual(['otp.sent,otp.verified'])
    expect(await splitCompletionsFor('token create ci --scope otp')).toEqual(['otp:read'])
  })

  test('completes the values of closed lists, and files where a file is wanted', async () => {
    expect(await completionsFor('app', 'create', '--env', '')).toEqual(['live', 'test'])
    expect(await completionsFor('completion', 'f')).toEqual(['fish'])
    expect(await completionsFor('rotate', 'web', 'sec')).toEqual(['secret'])
    expect(await completionsFor('serve', '--config', 'otpd.z')).toEqual(['otpd.zsh'])
    expect(await completionsFor('restore', 'otpd.f')).toEqual(['otpd.fish'])
    expect(await completionsFor('upgrade', '--from', 'otpd.f')).toEqual(['otpd.fish'])
    expect(await completionsFor('api', 'otpd.f')).toEqual([])
  })

  test('takes the script the way its first line says', async () => {
    const result = await runInShell('bash', 'source <(cat otpd.bash) && complete -p otpd')
    expect(result.stdout).toBe('complete -F _otpd otpd\n')
  })
})

describe('a script', () => {
  test('names every command, in every shell', async () => {
    const help = (await home.otpd([])).stdout
    const names = [...help.matchAll(/^ {2}([a-z][\w-]*) {2,}/gm)].map(([, name]) => name ?? '')
    expect(names.length).toBeGreaterThan(20)
    for (const name of names.filter((one) => one !== 'help')) {
      expect(scripts.bash).toContain(`'otpd ${name}'`)
      expect(scripts.zsh).toContain(`'otpd ${name}'`)
      expect(scripts.fish).toContain(`-f -a ${name} -d '`)
    }
  })

  for (const shell of ['bash', 'zsh', 'fish'])
    test.skipIf(Bun.which(shell) === null)(`is one that ${shell} can read`, async () => {
      expect(await runInShell(shell, `${shell} -n otpd.${shell}`)).toMatchObject({ exitCode: 0, stderr: '' })
    })

  test.skipIf(Bun.which('fish') === null)('completes in fish', async () => {
    const result = await runInShell(
      'fish',
      'source otpd.fish; complete -C "otpd pro"; complete -C "otpd app create --env "',
    )
    expect(result.stdout).toContain('project\tprojects')
    expect(result.stdout).toContain('live')
  })

  test.skipIf(Bun.which('fish') === null)(
    'asks the server of the line, and completes joined values, in fish',
    async () => {
      for (const [given, asked] of serverFlags) {
        answerOnly(`__complete app ${given.includes('=') ? given : asked}`, 'web')
        const result = await runInShell('fish', `source otpd.fish; complete -C "otpd ${given} app get "`)
        expect(result.stdout).toStartWith('web\n')
      }
      answerOnly('__complete country', 'DE', 'GB')
      const joined = ['logs --type otp.sent,otp.ver', 'app update web --countries DE,G'].map(
        (line) => `complete -C "otpd ${line}"`,
      )
      const { stdout } = await runInShell('fish', ['source otpd.fish', ...joined].join('; '))
      expect(stdout.split('\n').map((line) => line.split('\t')[0])).toEqual(
        expect.arrayContaining(['otp.sent,otp.verified', 'DE,GB']),
      )
    },
  )

  test.skipIf(Bun.which('zsh') === null)('asks the server of the line in zsh', async () => {
    const stubs = 'compdef() {}; compadd() { print -l "$@" }; _describe() { print -l "${(@P)2}" }'
    for (const [given, asked] of serverFlags) {
      answerOnly(`__complete app ${given.includes('=') ? given : asked}`, 'web')
      for (const line of [`otpd ${given} app get ''`, `otpd otp list ${given} --app ''`]) {
        const ask = `words=(${line}); CURRENT=\${#words}; _otpd`
        expect((await runInShell('zsh', `${stubs}; source otpd.zsh; ${ask}`)).stdout).toEndWith('web\n')
      }
    }
    const shift = 'compset() { print -l "compset $*" }'
    const ask = 'words=(otpd app create --env=l); CURRENT=4; _otpd'
    const { stdout } = await runInShell('zsh', `${stubs}; ${shift}; source otpd.zsh; ${ask}`)
    expect(stdout).toBe('compset -P 1 *=\nlive\ntest\n')
  })

  test.skipIf(Bun.which('zsh') === null)(
    'completes in zsh, sourced or from $fpath, at the first key',
    async () => {
      writeFileSync(join(home.directory, '_otpd'), scripts['zsh'] ?? '')
      const ask = '_describe() { print -l "${(@P)2}" }; words=(otpd pro); CURRENT=2; _otpd'
      const zshResult = await runInShell('zsh', `compdef() { print "$@" }; source otpd.zsh; ${ask}`)
      expect(zshResult.stdout).toStartWith('_otpd otpd\n')
      expect(zshResult.stdout).toContain('\nproject:projects')
      const autoloaded = await runInShell('zsh', `fpath=($PWD); autoload -U _otpd; ${ask}`)
      expect(autoloaded).toMatchObject({ exitCode: 0, stderr: '' })
      expect(autoloaded.stdout).toContain('\nproject:projects')
    },
  )

  test('for an unknown shell is rejected', async () => {
    expect((await home.otpd(['completion', 'tcsh'])).exitCode).toBe(2)
    const guessed = await home.otpd(['completion'], { env: { SHELL: '/usr/bin/zsh' } })
    expect(guessed).toMatchObject({ exitCode: 0, stdout: scripts['zsh'] })
    const unknown = await home.otpd(['completion'], { env: { SHELL: '/bin/tcsh' } })
    expect([unknown.exitCode, unknown.stderr]).toEqual([2, expect.stringContaining('bash, zsh, fish')])
  })
})
