import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { CliError, exitCodes } from '../../../cli/terminal/errors.ts'
import { createOutput } from '../../../cli/terminal/output.ts'
import { createCliFixture, pageResponse, sampleProject, errorResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

describe('output', () => {
  test('with --json is the body of the API, byte for byte', async () => {
    const body = '{"data":[ {"id":"prj_1","name":"a\\u0062"} ],"pagination":{"limit":50,"nextCursor":null}}'
    cli.respond = () => new Response(body)
    expect(await cli.home.otpd(['project', 'list', '--json'])).toMatchObject({
      stdout: `${body}\n`,
      stderr: '',
    })
  })

  test('with --json is the error of the API on stderr, and nothing on stdout', async () => {
    cli.respond = () => errorResponse(403, 'PLAN_LIMIT_REACHED', 'The plan allows 10 projects.')
    const result = await cli.home.otpd(['project', 'create', 'x', '--json'])
    expect(result).toMatchObject({ exitCode: 6, stdout: '' })
    expect(JSON.parse(result.stderr).error.traceId).toBe('req_1')
  })

  test('with --json is an error object when no server was called', async () => {
    const result = await cli.home.otpd(['project', 'craete', '--json'])
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(JSON.parse(result.stderr).error).toMatchObject({
      code: 'USAGE',
      message: "Unknown command 'craete'.",
      // One hint per line, as on a terminal: one may be a command.
      hint: 'Did you mean: otpd project create\nSee: otpd project --help',
    })
  })

  test('of a mistyped subcommand that was typed without its noun names the whole command', async () => {
    expect((await cli.home.otpd(['sned'])).stderr).toContain('Did you mean: otpd otp send\n')
    const { stderr } = await cli.home.otpd(['whomai'])
    expect(stderr).toContain('Did you mean: otpd whoami\n')
  })

  test.each([
    ['auth login', 'otpd login'],
    ['auth status', 'otpd whoami'],
    ['events', 'otpd logs'],
    ['trigger otp.verified', 'otpd webhook test'],
    ['webhook resend whk_1', 'otpd webhook redeliver'],
  ])('of %s, as in programs that people come from, names ours', async (line, command) => {
    const { stderr } = await cli.home.otpd(line.split(' '))
    expect(stderr).toMatch(
      new RegExp(`^Error: Unknown command '\\w+'\\.\\n  Did you mean: ${command}\\n  See: `),
    )
  })

  test.each([
    ['help nope', "Unknown command 'nope'.\n  See: otpd --help"],
    ['help otp snd', "Unknown command 'snd'.\n  Did you mean: otpd otp send\n  See: otpd otp --help"],
    ['otp help snd', "Unknown command 'snd'.\n  Did you mean: otpd otp send\n  See: otpd otp --help"],
    ['help app creat', "Unknown command 'creat'.\n  Did you mean: otpd app create\n  See: otpd app --help"],
    [
      'webhook create',
      'Missing --app <id|name>, --url <url> and --events <types>.\n  See: otpd webhook create --help',
    ],
    ['app create --env test', 'Missing <name> and --project <id|name>.\n  See: otpd app create --help'],
    [
      'project list --all --limit 3',
      "Option '--all' cannot be used with option '--limit <number>'.\n  See: otpd project list --help",
    ],
    [
      'api v1/otp -X GET -d {}',
      'A GET has no body, so --data is not sent.\n  For query parameters, use: --field key=value',
    ],
    ['logs nope', "Unknown argument 'nope'.\n  See: otpd logs --help"],
  ])('of otpd %s is a usage error that says all at once', async (line, expected) => {
    const result = await cli.home.otpd(line.split(' '))
    expect(result).toMatchObject({ exitCode: 2, stdout: '', stderr: `Error: ${expected}\n` })
  })

  test('of otpd otp help is the help of the noun', async () => {
    const help = await cli.home.otpd(['otp', '--help'])
    for (const line of ['otp help', 'help otp']) expect(await cli.home.otpd(line.split(' '))).toEqual(help)
    expect((await cli.home.otpd(['webhook', 'help', 'create'])).stdout).toMatch(/--url <url> .*\(required\)/)
  })

  test('of an empty list says what to do, and is [] as JSON', async () => {
    cli.respond = () => pageResponse()
    expect((await cli.home.otpd(['project', 'list'])).stdout).toBe(
      'No projects yet. Create one: otpd project create NAME\n',
    )
    expect(JSON.parse((await cli.home.otpd(['project', 'list', '--json'])).stdout).data).toEqual([])
  })

  test('keeps hints on stderr, and leaves them out with --quiet', async () => {
    cli.respond = ({ method }) =>
      method === 'GET' ? pageResponse() : Response.json({ data: sampleProject() }, { status: 201 })
    const result = await cli.home.otpd(['project', 'create', 'storefront'])
    expect(result.stdout).toContain('prj_01arz3ndektsv4rrffq69g5fav')
    expect(result.stdout).not.toContain('Next:')
    expect(result.stderr).toContain('Next: otpd app create')
    expect(await cli.home.otpd(['project', 'create', 'storefront', '--quiet'])).toMatchObject({
      stdout: `${sampleProject().id}\n`,
      stderr: '',
    })
    cli.respond = () => pageResponse(sampleProject(), sampleProject())
    expect((await cli.home.otpd(['project', 'ls', '-q'])).stdout).toBe(`${sampleProject().id}\n`.repeat(2))
  })

  test('never contains control characters of foreign text', async () => {
    cli.respond = () => pageResponse(sampleProject({ name: 'a\u001b[2Jb\nc\u202ed' }))
    const { stdout } = await cli.home.otpd(['project', 'list'])
    expect(stdout).toContain('a�[2Jb�c�d')
    cli.respond = () => errorResponse(400, 'INVALID_ARGUMENT', 'bad\u001b[31m')
    expect((await cli.home.otpd(['project', 'list'])).stderr).toContain('bad�[31m')
  })

  test('is coloured by FORCE_COLOR and never by NO_COLOR', async () => {
    cli.respond = () => pageResponse(sampleProject())
    expect((await cli.home.otpd(['project', 'list'], { env: { FORCE_COLOR: '1' } })).stdout).toContain(
      '\u001b[',
    )
    const plain = await cli.home.otpd(['project', 'list'], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain('\u001b[')
    expect(
      (await cli.home.otpd(['project', 'list', '--no-color'], { env: { FORCE_COLOR: '1' } })).stdout,
    ).not.toContain('\u001b[')
  })

  test('says that a list has more pages', async () => {
    cli.respond = () =>
      Response.json({ data: [sampleProject()], pagination: { limit: 1, nextCursor: 'abc' } })
    const result = await cli.home.otpd(['project', 'list', '--limit', '1'])
    expect(cli.server.requests[0]?.path).toBe('/v1/projects?limit=1')
    expect(result.stderr).toContain('--all')
    expect(result.stderr).not.toContain('abc')
  })

  test.each([
    'project list',
    'app list',
    'otp list',
    'token list',
    'user list',
    'webhook list',
    'guard rules',
    'inbox',
    'audit',
  ])('reads all pages of otpd %s with --all', async (list) => {
    cli.respond = ({ path }) => {
      const isLast = path.includes('cursor=abc')
      const data = [{ ...sampleProject(), id: isLast ? 'last' : 'first' }]
      return Response.json({ data, pagination: { limit: 200, nextCursor: isLast ? null : 'abc' } })
    }
    const { stdout } = await cli.home.otpd([...list.split(' '), '--all', '--json'])
    const { data, pagination } = JSON.parse(stdout)
    expect(data.map(({ id }: { id: string }) => id)).toEqual(['first', 'last'])
    expect(pagination).toEqual({ limit: 2, nextCursor: null })
  })
})

describe('help', () => {
  test('of every command ends with examples, and exits 0', async () => {
    for (const commandPath of [['otp', 'send'], ['app', 'create'], ['login'], ['config', 'show']]) {
      const result = await cli.home.otpd([...commandPath, '--help'])
      expect(result).toMatchObject({ exitCode: 0, stderr: '' })
      expect(result.stdout).toContain(`Examples:\n  otpd ${commandPath.join(' ')}`)
    }
  })

  test('is the same from the help command and the --help flag, at any depth', async () => {
    for (const commandPath of [['app'], ['app', 'create'], ['apps', 'new']]) {
      const { stdout } = await cli.home.otpd(['help', ...commandPath])
      expect(stdout).toBe((await cli.home.otpd([...commandPath, '--help'])).stdout)
      expect(stdout).toContain('Usage: otpd app')
    }
  })

  test('of a command group shows examples of its commands', async () => {
    const { stdout } = await cli.home.otpd(['app', '--help'])
    expect(stdout).toContain('Examples:\n  otpd app create web ')
    expect(stdout).toContain('\n  otpd app list\n')
  })

  test('of plain otpd goes to stdout', async () => {
    expect(await cli.home.otpd([])).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('is suggested after a typing error, with the likely command', async () => {
    const result = await cli.home.otpd(['app', 'list', '--projct', 'x'])
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toContain('Did you mean --project?')
    expect(result.stderr).toContain('See: otpd app list --help')
  })
})

test('JSON is escaped on a terminal, and unchanged in a pipe', () => {
  const body = '{"data":{"name":"a\u009b31mb\u202ec\u2028d"}}'
  const print = (isTerminal: boolean) => {
    let [out, errors] = ['', '']
    const output = createOutput(
      {
        env: {},
        now: () => 0,
        stdoutIsTerminal: isTerminal,
        stderrIsTerminal: isTerminal,
        writeOut: (text) => void (out += text),
        writeError: (text) => void (errors += text),
      },
      { json: true },
    )
    output.printResult(body, () => '')
    output.printError(new CliError(exitCodes.refused, 'X', 'refused', { body }))
    return [out, errors]
  }
  const escaped = String.raw`{"data":{"name":"a\u009b31mb\u202ec\u2028d"}}`
  expect(print(true)).toEqual([`${escaped}\n`, `${escaped}\n`])
  expect(print(false)).toEqual([`${body}\n`, `${body}\n`])
})

test('text from a server is written to a terminal with colours and no other control characters', () => {
  const hostile = 'a\u001b]0;title\u0007b\u001b[2Jc\rd\u009b31me\u202ef\u2028g\u{e0001}h'
  const print = (isTerminal: boolean) => {
    let [out, errors] = ['', '']
    const output = createOutput(
      {
        env: { TERM: 'xterm' },
        now: () => 0,
        stdoutIsTerminal: isTerminal,
        stderrIsTerminal: isTerminal,
        writeOut: (text) => void (out += text),
        writeError: (text) => void (errors += text),
      },
      {},
    )
    output.printResult('', () => `${output.paint.red('ID')}\t👩\u200d💻\n${hostile}`)
    output.note(hostile)
    output.warn(hostile)
    output.suggestNext(hostile)
    output.printError(new Error(hostile))
    return { out, errors }
  }
  const shown = print(true)
  expect(shown.out).toBe('\u001b[31mID\u001b[39m\t👩\u200d💻\na�]0;title�b�[2Jc�d�31me�f�g�h\n')
  const errors = Bun.stripANSI(shown.errors)
  for (const control of ['\u001b', '\u0007', '\r', '\u009b', '\u202e', '\u2028'])
    expect(errors).not.toContain(control)
  expect(print(false).out).toContain(hostile)
})
