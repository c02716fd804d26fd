import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import packageJson from '../../package.json'

const root = join(import.meta.dir, '../..')
const path = join(root, '.github/CONTRIBUTING.md')
const guide = readFileSync(path, 'utf8')

type Block = { language: string; text: string }

const sections = new Map(
  guide.split(/^## /m).map((section) => [section.split('\n', 1)[0] ?? '', section] as const),
)
const textOf = (heading: string) => sections.get(heading) ?? ''
const listBlocks = (section: string): Block[] =>
  [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text,
  }))
const examples = [...sections.keys()].filter((heading) => heading.startsWith('Add a '))

/** Replaces `NNNN` by the number of the next migration. */
function numbered(file: string) {
  const next = readdirSync(join(root, 'migrations/sqlite')).length + 1
  return file.replace('NNNN', String(next).padStart(4, '0'))
}

/** Files that a block creates, with their content, or changes, with the changed lines and their context. */
function listEdits({ language, text }: Block): { file: string; hunks?: string[]; content?: string }[] {
  if (language === 'diff') {
    const [, ...parts] = text.split(/^\+\+\+ /m)
    return parts.map((part) => {
      const [file = '', ...lines] = part.split('\n')
      return { file, hunks: lines.join('\n').split(/^@@\n/m) }
    })
  }
  const [, names = '', content = ''] = /^(?:\/\/|--) ([^\n]*)\n(.*)$/s.exec(text) ?? []
  return names.split(', ').map((file) => ({ file: numbered(file), content }))
}

const editsOf = (heading: string) =>
  listBlocks(textOf(heading))
    .filter(({ language }) => language !== 'sh')
    .flatMap(listEdits)

/** Applies a hunk of a diff, whose context must occur exactly once. */
function applyHunk(text: string, hunk: string) {
  const side = (mark: string) =>
    hunk
      .split('\n')
      .filter((line) => line.startsWith(' ') || line.startsWith(mark))
      .map((line) => `${line.slice(1)}\n`)
      .join('')
  expect({ context: side('-'), occurrences: text.split(side('-')).length - 1 }).toMatchObject({
    occurrences: 1,
  })
  return text.replace(side('-'), () => side('+'))
}

describe('the examples of the contributor guide', () => {
  const copy = mkdtempSync(join(tmpdir(), 'otpd-guide-'))
  const run = (...command: string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: copy, stdin: 'ignore' })
    return { exitCode, printed: `${stdout}${stderr}` }
  }
  const bin = (name: string) => join(root, 'node_modules/.bin', name)

  beforeAll(() => {
    const copied = ['src', 'cli', 'test', 'migrations', 'package.json', 'tsconfig.json', 'README.md']
    for (const name of [...copied, '.oxlintrc.json', '.prettierignore'])
      cpSync(join(root, name), join(copy, name), { recursive: true })
    // Nothing here may run npm: it would empty the folder that the link points to.
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    for (const { file, hunks, content } of examples.flatMap(editsOf)) {
      const target = join(copy, file)
      expect([file, existsSync(target)]).toEqual([file, hunks !== undefined])
      writeFileSync(target, content ?? (hunks ?? []).reduce(applyHunk, readFileSync(target, 'utf8')))
    }
  })
  afterAll(() => rmSync(copy, { recursive: true, force: true }))

  test('compile, and pass the linter and the formatter', () => {
    const files = [...new Set(examples.flatMap(editsOf).map(({ file }) => file))]
    // The other tests take half of the time, and no example changes what they use.
    const include = ['src', 'cli', ...files.filter((file) => file.startsWith('test/'))]
    writeFileSync(join(copy, 'examples.json'), JSON.stringify({ extends: './tsconfig.json', include }))
    // Several threads would each check the types that they share.
    expect(run(bin('tsc'), '-p', 'examples.json', '--singleThreaded')).toEqual({ exitCode: 0, printed: '' })
    const linted = files.filter((file) => /\.tsx?$/.test(file))
    expect(run(bin('oxlint'), '--deny-warnings', ...linted)).toMatchObject({ exitCode: 0 })
    expect(run(bin('prettier'), '--check', ...files)).toMatchObject({ exitCode: 0 })
  }, 300_000)

  test('pass the tests that they name', () => {
    const tests = new Set<string>()
    for (const heading of examples) {
      const named = [...textOf(heading).matchAll(/`[^`]*npx bun test ([^`]+)`/g)].flatMap(([, words]) =>
        (words ?? '').split(' '),
      )
      const own = named.filter((file) => !file.startsWith('test/e2e/'))
      expect([heading, own]).not.toEqual([heading, []])
      for (const file of own) tests.add(`./${file}`)
    }
    const { exitCode, printed } = run('bun', 'test', '--timeout', '60000', '--only-failures', ...tests)
    expect({ exitCode, printed }).toMatchObject({ exitCode: 0 })
  }, 300_000)

  test.each(examples)('%s: touches as many files as it says', (heading) => {
    const files = new Set(editsOf(heading).map(({ file }) => file)).size
    expect(textOf(heading)).toContain(`**${files} files, `)
  })

  test('add a kind of provider to the table of the guide', () => {
    const script =
      "import { providerTable } from './cli/guides/reference/providers.ts'; process.stdout.write(providerTable())"
    expect(run('bun', '-e', script).printed).toContain('| `acme` | Acme SMS | sms | `token` |')
  })

  test('add a command that has help, and a case', () => {
    expect(run('bun', 'cli/main.ts', 'limits', '--help')).toMatchObject({ exitCode: 0 })
    const args = ['test', './test/e2e/every-command.test.ts', '-t', 'there is a case for every command']
    expect(run('bun', ...args)).toMatchObject({ exitCode: 0 })
  })
})

describe('the contributor guide', () => {
  test('has at most 350 lines', () => {
    expect(guide.split('\n').length - 1).toBeLessThanOrEqual(350)
  })

  test('links to files that exist', () => {
    const links = [...guide.matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => link ?? '')
    expect(links.length).toBeGreaterThan(5)
    for (const link of links) expect([link, existsSync(resolve(dirname(path), link))]).toEqual([link, true])
  })

  test('names files that exist, and what is in them', () => {
    const table = textOf('Where to change what')
    const places = [...table.matchAll(/`([\w./-]+)`(?:: (`\w+`(?:, `\w+`)*))?/g)]
    expect(places.length).toBeGreaterThan(20)
    for (const [, file = '', names = ''] of places) {
      expect([file, existsSync(join(root, file))]).toEqual([file, true])
      if (names === '') continue
      const words = new Set(readFileSync(join(root, file), 'utf8').split(/\W+/))
      for (const name of names.replaceAll('`', '').split(', '))
        expect([file, name, words.has(name)]).toEqual([file, name, true])
    }
  })

  const lines = [...sections.values()]
    .flatMap(listBlocks)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ text }) => text.trim().split('\n'))
    .map((line) => line.replace(/\s+#.*$/, ''))

  test('names scripts and files that exist in its commands', () => {
    expect(lines.length).toBeGreaterThan(10)
    const scripts = Object.keys(packageJson.scripts)
    for (const line of lines) {
      const [, script] = /npm (?:run )?(?:-s )?([\w:]+)/.exec(line) ?? []
      if (script !== undefined) expect(scripts).toContain(script)
      for (const [file] of line.matchAll(/\b(?:test|cli)\/[\w./-]+\.ts/g))
        expect([file, existsSync(join(root, file))]).toEqual([file, true])
    }
  })

  test('shows how to run one test, the server from source, and a look at its database', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'otpd-source-'))
    const find = (part: string) => lines.find((line) => line.includes(part)) ?? ''
    const start = (line: string) =>
      Bun.spawn(['sh', '-c', `exec ${line.replace('npx bun', 'bun').replaceAll('/tmp/otpd', folder)}`], {
        cwd: root,
        stdout: 'pipe',
        stderr: 'pipe',
      })
    const oneTest = start(find("-t 'leading zeros'"))
    expect(await oneTest.stderr.text()).toContain(' 1 pass')

    const server = start(`${find('--log-level debug')} --listen 127.0.0.1:0`)
    const url = await readUntil(server.stdout, /http:\/\/127\.0\.0\.1:\d+/)
    expect(await start(`${find('main.ts health')} --server ${url}`).exited).toBe(0)
    expect(await start(find('bun:sqlite')).stdout.text()).toContain('0001_initial')
    server.kill()
    expect(await server.exited).toBe(0)
    expect(await server.stderr.text()).toContain('debug request')
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  test('names parts of the fuzzer and families of faults that exist', () => {
    const printed = new Map<string, string>()
    const help = (name: string) => {
      const command = ['bun', `test/${name}/run.ts`, '--help']
      const text = printed.get(name) ?? Bun.spawnSync(command, { cwd: root }).stdout.toString()
      printed.set(name, text)
      return text
    }
    for (const line of lines.filter((one) => one.includes('--only'))) {
      const [, script = '', part = ''] = /npm run (\w+) -- --only (\w+)/.exec(line) ?? []
      expect(help(script)).toContain(part)
      for (const [flag] of line.matchAll(/--(?:rounds|kills)/g)) expect(help(script)).toContain(flag)
    }
  })
})

/** Reads a stream until the text matches. @returns the match */
async function readUntil(stream: ReadableStream<Uint8Array>, pattern: RegExp) {
  let text = ''
  for await (const chunk of stream) {
    text += new TextDecoder().decode(chunk)
    const [match] = pattern.exec(text) ?? []
    if (match !== undefined) return match
  }
  throw new Error(`The server ended with: ${text}`)
}
