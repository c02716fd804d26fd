import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createConversation, page, project, refusal } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

describe('output', () => {
  test('with --json is the body of the API, byte for byte', async () => {
    const body = '{"data":[ {"id":"prj_1","name":"a\\u0062"} ],"pagination":{"limit":50,"nextCursor":null}}'
    talk.answer = () => new Response(body)
    expect(await talk.home.otpd(['project', 'list', '--json'])).toMatchObject({
      stdout: `${body}\n`,
      stderr: '',
    })
  })

  test('with --json is the error of the API on stderr, and nothing on stdout', async () => {
    talk.answer = () => refusal(403, 'PLAN_LIMIT_REACHED', 'The plan allows 10 projects.')
    const ran = await talk.home.otpd(['project', 'create', 'x', '--json'])
    expect(ran).toMatchObject({ exitCode: 6, stdout: '' })
    expect(JSON.parse(ran.stderr).error.traceId).toBe('req_1')
  })

  test('with --json is an error object where no server was asked', async () => {
    const ran = await talk.home.otpd(['project', 'craete', '--json'])
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(JSON.parse(ran.stderr).error).toMatchObject({
      code: 'USAGE',
      message: "Unknown command 'craete'.",
      // A line each, as on a terminal: one may be a command.
      hint: 'Did you mean create?\nSee: otpd project --help',
    })
  })

  test('of an empty list says what to do, and is [] as JSON', async () => {
    talk.answer = () => page()
    expect((await talk.home.otpd(['project', 'list'])).stdout).toBe(
      'No projects yet. Create one: otpd project create NAME\n',
    )
    expect(JSON.parse((await talk.home.otpd(['project', 'list', '--json'])).stdout).data).toEqual([])
  })

  test('keeps hints on stderr, and leaves them out with --quiet', async () => {
    talk.answer = () => Response.json({ data: project() }, { status: 201 })
    const ran = await talk.home.otpd(['project', 'create', 'storefront'])
    expect(ran.stdout).toContain('prj_01arz3ndektsv4rrffq69g5fav')
    expect(ran.stdout).not.toContain('Next:')
    expect(ran.stderr).toContain('Next: otpd app create')
    expect((await talk.home.otpd(['project', 'create', 'storefront', '--quiet'])).stderr).toBe('')
  })

  test('never holds control characters of somebody else', async () => {
    talk.answer = () => page(project({ name: 'a\u001b[2Jb\nc\u202ed' }))
    const { stdout } = await talk.home.otpd(['project', 'list'])
    expect(stdout).toContain('a�[2Jb�c�d')
    talk.answer = () => refusal(400, 'INVALID_ARGUMENT', 'bad\u001b[31m')
    expect((await talk.home.otpd(['project', 'list'])).stderr).toContain('bad�[31m')
  })

  test('is coloured by FORCE_COLOR and never by NO_COLOR', async () => {
    talk.answer = () => page(project())
    expect((await talk.home.otpd(['project', 'list'], { env: { FORCE_COLOR: '1' } })).stdout).toContain(
      '\u001b[',
    )
    const plain = await talk.home.otpd(['project', 'list'], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain('\u001b[')
    expect(
      (await talk.home.otpd(['project', 'list', '--no-color'], { env: { FORCE_COLOR: '1' } })).stdout,
    ).not.toContain('\u001b[')
  })

  test('says that a list goes on', async () => {
    talk.answer = () => Response.json({ data: [project()], pagination: { limit: 1, nextCursor: 'abc' } })
    const ran = await talk.home.otpd(['project', 'list', '--limit', '1'])
    expect(talk.server.asked[0]?.path).toBe('/v1/projects?limit=1')
    expect(ran.stderr).toContain('--cursor abc')
  })
})

describe('help', () => {
  test('of every command ends with examples, and exits 0', async () => {
    for (const words of [['otp', 'send'], ['app', 'create'], ['login'], ['config', 'show']]) {
      const ran = await talk.home.otpd([...words, '--help'])
      expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
      expect(ran.stdout).toContain(`Examples:\n  otpd ${words.join(' ')}`)
    }
  })

  test('is asked for with the word as with the flag, at any depth', async () => {
    for (const words of [['app'], ['app', 'create'], ['apps', 'new']]) {
      const { stdout } = await talk.home.otpd(['help', ...words])
      expect(stdout).toBe((await talk.home.otpd([...words, '--help'])).stdout)
      expect(stdout).toContain('Usage: otpd app')
    }
  })

  test('of what groups commands shows examples of them', async () => {
    const { stdout } = await talk.home.otpd(['app', '--help'])
    expect(stdout).toContain('Examples:\n  otpd app create web ')
    expect(stdout).toContain('\n  otpd app list\n')
  })

  test('of plain otpd goes to stdout', async () => {
    expect(await talk.home.otpd([])).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('is pointed at, with the word that was meant', async () => {
    const ran = await talk.home.otpd(['app', 'list', '--projct', 'x'])
    expect(ran.exitCode).toBe(2)
    expect(ran.stderr).toContain('Did you mean --project?')
    expect(ran.stderr).toContain('See: otpd app list --help')
  })
})
