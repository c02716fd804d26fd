import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHome } from './harness.ts'

const home = createHome()
const scripts: Record<string, string> = {}

beforeAll(async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const ran = await home.otpd(['completion', shell])
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    scripts[shell] = ran.stdout
    writeFileSync(join(home.directory, `otpd.${shell}`), ran.stdout)
  }
})
afterAll(home.remove)

async function inShell(shell: string, text: string) {
  const child = Bun.spawn([shell, '-c', text], {
    cwd: home.directory,
    env: { PATH: process.env.PATH ?? '', HOME: home.directory },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { exitCode: await child.exited, stdout, stderr }
}

/** What bash offers where the cursor stands behind the last of these words. */
async function offered(...words: string[]) {
  const line = ['otpd', ...words].map((word) => `'${word}'`).join(' ')
  const ran = await inShell(
    'bash',
    `set -u; . ./otpd.bash; COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _otpd; printf '%s\\n' "\${COMPREPLY[@]-}"`,
  )
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  return ran.stdout.split('\n').filter(Boolean)
}

describe('bash', () => {
  test('completes commands, and their words by the other name too', async () => {
    expect(await offered('pro')).toContain('project')
    expect((await offered('')).toSorted()).toEqual(expect.arrayContaining(['admin', 'backup', 'serve']))
    expect(await offered('project', 'c')).toEqual(['create'])
    expect(await offered('project', 'ls', '--li')).toEqual(['--limit'])
  })

  test('completes flags of the command and those of every command', async () => {
    expect(await offered('app', 'create', '--en')).toEqual(['--env', '--env-file'])
    expect(await offered('app', 'create', '--js')).toEqual(['--json'])
    expect(await offered('--server', 'http://127.0.0.1:1', 'app', 'cr')).toEqual(['create'])
  })

  test('completes the values of closed lists, and leaves files to the shell', async () => {
    expect(await offered('app', 'create', '--env', '')).toEqual(['live', 'test'])
    expect(await offered('completion', 'f')).toEqual(['fish'])
    expect(await offered('rotate', 'web', 's')).toEqual(['secret'])
    expect(await offered('serve', '--config', '')).toEqual([])
    expect(await offered('restore', '')).toEqual([])
  })

  test('takes the script the way its first line says', async () => {
    const ran = await inShell('bash', 'source <(cat otpd.bash) && complete -p otpd')
    expect(ran.stdout).toBe('complete -o default -F _otpd otpd\n')
  })
})

describe('a script', () => {
  test('names every command there is, in every shell', async () => {
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
      expect(await inShell(shell, `${shell} -n otpd.${shell}`)).toMatchObject({ exitCode: 0, stderr: '' })
    })

  test.skipIf(Bun.which('fish') === null)('completes in fish', async () => {
    const ran = await inShell(
      'fish',
      'source otpd.fish; complete -C "otpd pro"; complete -C "otpd app create --env "',
    )
    expect(ran.stdout).toContain('project\tprojects')
    expect(ran.stdout).toContain('live')
  })

  test.skipIf(Bun.which('zsh') === null)(
    'completes in zsh, sourced or from $fpath, at the first key',
    async () => {
      writeFileSync(join(home.directory, '_otpd'), scripts['zsh'] ?? '')
      const ask = '_describe() { print -l "${(@P)2}" }; words=(otpd pro); CURRENT=2; _otpd'
      const sourced = await inShell('zsh', `compdef() { print "$@" }; source otpd.zsh; ${ask}`)
      expect(sourced.stdout).toStartWith('_otpd otpd\n')
      expect(sourced.stdout).toContain('\nproject:projects')
      const autoloaded = await inShell('zsh', `fpath=($PWD); autoload -U _otpd; ${ask}`)
      expect(autoloaded).toMatchObject({ exitCode: 0, stderr: '' })
      expect(autoloaded.stdout).toContain('\nproject:projects')
    },
  )

  test('for another shell is refused', async () => {
    expect((await home.otpd(['completion', 'tcsh'])).exitCode).toBe(2)
  })
})
