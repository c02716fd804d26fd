import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, pageResponse, errorResponse, type RecordedRequest } from './cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const eventId = (number: number) => `evt_${String(number).padStart(26, '0')}`
const appId = 'app_01arz3ndektsv4rrffq69g5fav'

const entry = (number: number, overrides: Record<string, unknown> = {}) => ({
  id: eventId(number),
  type: 'otp.sent',
  appId,
  requestId: 'otp_01arz3ndektsv4rrffq69g5fav',
  phone: '+14155550100',
  status: 'pending',
  detail: null,
  at: '2026-11-20T11:00:00.000Z',
  ...overrides,
})

const apps = () =>
  pageResponse({ id: appId, name: 'web', projectId: 'prj_1', environment: 'test', status: 'active' })

const sse = (...blocks: string[]) =>
  new Response(blocks.map((block) => `${block}\n\n`).join(''), {
    headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  })
const message = (entry: { id: string }) => `id: ${entry.id}\ndata: ${JSON.stringify(entry)}`

/** Serves a log, and one response for each connection to its stream. Then the session has ended, which ends a tail. */
function serveLog(log: unknown[], streams: Array<() => Response>) {
  const afterParams: Array<string | null> = []
  const queries: URLSearchParams[] = []
  cli.respond = ({ path }: RecordedRequest) => {
    const { pathname, searchParams } = new URL(path, 'http://x')
    if (pathname === '/v1/applications') return apps()
    if (pathname === '/v1/logs') {
      queries.push(searchParams)
      return pageResponse(...log)
    }
    afterParams.push(searchParams.get('after'))
    return streams.shift()?.() ?? errorResponse(401, 'UNAUTHENTICATED', 'The token has expired.')
  }
  return { afterParams, queries }
}

const idsIn = (stdout: string): unknown[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).id)

describe('logs', () => {
  test('prints one entry per line, with the name of the application', async () => {
    const { queries } = serveLog(
      [
        entry(1),
        entry(2, { type: 'otp.failed', detail: 'max_attempts', status: 'failed' }),
        entry(3, { type: 'new.kind' }),
      ],
      [],
    )
    const result = await cli.home.otpd(['logs'])
    expect(result.exitCode).toBe(0)
    const [heading, first, second, third] = result.stdout.trim().split('\n')
    expect(heading).toMatch(/^TIME \(\S+\) +EVENT +PHONE +APP +DETAIL, REQUEST$/)
    expect(first).toMatch(/^\S+ {5}→ otp\.sent +\+14155550100 {2,}web {2}otp_01arz3ndektsv4rrffq69g5fav$/)
    expect(second).toMatch(/✗ otp\.failed .* web {2}max_attempts {2}otp_/)
    expect(third).toContain('· new.kind')
    expect(queries[0]?.get('limit')).toBe('20')
  })

  test.each([
    [80, 'storefront of t…'],
    [120, 'storefront of the north'],
  ])('cuts the name of an application at a fifth of %i columns', async (columns, name) => {
    serveLog([entry(1)], [])
    const { respond } = cli
    const app = { id: appId, name: 'storefront of the north', projectId: 'prj_1', environment: 'test' }
    cli.respond = (request) =>
      request.path.startsWith('/v1/applications')
        ? pageResponse({ ...app, status: 'active' })
        : respond(request)
    const { stdout } = await cli.home.otpd(['logs'], { columns })
    expect(Bun.stripANSI(stdout)).toMatch(new RegExp(` {2}${name}( |$)`, 'm'))
  })

  test('prints the body of the API with --json', async () => {
    serveLog([entry(1)], [])
    const result = await cli.home.otpd(['logs', '--json', '--limit', '5'])
    expect(JSON.parse(result.stdout)).toEqual({
      data: [entry(1)],
      pagination: { limit: 50, nextCursor: null },
    })
    expect(cli.server.requests).toHaveLength(1)
  })

  test('lets no entry move the cursor or colour the screen', async () => {
    serveLog([entry(1, { detail: 'a\u001b[31mb\nc' })], [])
    const { stdout } = await cli.home.otpd(['logs'])
    expect(stdout).toContain('a�[31mb�c')
  })

  test.each([
    [120, / {2}web {2}max_attempts {2}otp_01arz3ndektsv4rrffq69g5fav$/],
    [90, / {2}web {2}max_attempts {2}otp_01ar…5fav$/],
    [77, / {2}web {2}max_attempts$/],
    [60, / \+14155550100 +max_attem…$/],
    [50, / \+14155550100$/],
  ])('fits a terminal of %d columns', async (columns, end) => {
    serveLog([entry(1, { type: 'otp.failed', detail: 'max_attempts' })], [])
    const { stdout } = await cli.home.otpd(['logs', '--no-color'], { columns })
    for (const line of stdout.split('\n')) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
    expect(stdout.trimEnd()).toMatch(end)
  })

  test('aligns the names of applications, and shows the date of an entry that is not of today', async () => {
    const names = ['web', 'a-long-name-of-an-application']
    const apps = names.map((name, index) => ({ id: `app_${index}`, name }))
    const entries = apps.map(({ id }, index) => entry(index, { appId: id, at: '2026-11-18T11:00:00.000Z' }))
    cli.respond = ({ path }) => pageResponse(...(path.startsWith('/v1/logs') ? entries : apps))
    const [, first = '', second = ''] = (await cli.home.otpd(['logs'])).stdout.split('\n')
    expect(first).toMatch(/^11-18 \d\d:00 /)
    expect(first.indexOf('otp_')).toBe(second.indexOf('otp_'))
  })

  test('says what to do when there are no events, and when none match', async () => {
    serveLog([], [])
    expect((await cli.home.otpd(['logs'])).stdout).toContain('otpd otp send')
    expect((await cli.home.otpd(['logs', '--type', 'otp.sent'])).stdout).toBe(
      'No matching events. See all of them: otpd logs\n',
    )
  })

  test('filters by phone and time over several pages, and by application and type at the server', async () => {
    const requestedPaths: string[] = []
    const old = '2026-11-20T09:00:00.000Z'
    cli.respond = ({ path }) => {
      requestedPaths.push(path)
      return path.includes('cursor=older')
        ? pageResponse(entry(1, { at: old }), entry(2, { phone: '+442071838750' }))
        : Response.json({
            data: [entry(3), entry(4, { phone: '+442071838750' })],
            pagination: { limit: 200, nextCursor: 'older' },
          })
    }
    const flags = ['--app', appId, '--type', 'otp.sent', '--phone', '8750', '--since', '2h']
    const result = await cli.home.otpd(['logs', ...flags, '--json'])
    expect(JSON.parse(result.stdout).data.map(({ id }: { id: string }) => id)).toEqual([
      eventId(2),
      eventId(4),
    ])
    const expected = expect.stringContaining(`limit=200&appId=${appId}&type=otp.sent`)
    expect(requestedPaths).toEqual([expected, expected])
  })

  test('finds a number as it is written in its country, and shows ids to a token that may not read names', async () => {
    const refusal = { error: { code: 'FORBIDDEN', reason: 'SCOPE_MISSING', message: 'No.' } }
    cli.respond = ({ path }) =>
      path.startsWith('/v1/applications')
        ? Response.json(refusal, { status: 403 })
        : pageResponse(entry(1, { phone: '+447700900123' }), entry(2))
    const run = (options = {}) => cli.home.otpd(['logs', '--phone', '07700 900123'], options)
    const [, ...lines] = (await run()).stdout.trim().split('\n')
    expect(lines).toEqual([expect.stringMatching(new RegExp(`\\+447700900123 +${appId} {2}otp_`))])
    expect((await run({ columns: 100 })).stdout).toContain('app_01ar…5fav')
  })

  test.each([
    [['--limit', '0']],
    [['--limit', '10001']],
    [['--since', 'yesterday']],
    [['--since', '2026']],
    [['--phone', 'x']],
    [['heads']],
  ])('refuses %j before it asks', async (flags) => {
    expect((await cli.home.otpd(['logs', ...flags])).exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })
})

describe('logs --tail', () => {
  test('prints the last entries and then each new one, as lines of JSON', async () => {
    const { afterParams } = serveLog(
      [entry(1), entry(2)],
      [() => sse('retry: 1000\nid: evt_x', message(entry(3)))],
    )
    const result = await cli.home.otpd(['logs', '--tail', '--json'])
    expect(idsIn(result.stdout)).toEqual([eventId(1), eventId(2), eventId(3)])
    expect(afterParams[0]).toBe(eventId(2))
    // Ended by the token, which cannot be renewed.
    expect(result.exitCode).toBe(4)
  })

  test('starts at the beginning of an empty log', async () => {
    const { afterParams } = serveLog([], [() => sse(message(entry(1)))])
    await cli.home.otpd(['logs', 'tail', '--json'])
    expect(afterParams[0]).toBe(`evt_${'0'.repeat(26)}`)
  })

  test('resumes where it was after a lost connection, and shows the gap', async () => {
    const { afterParams } = serveLog(
      [entry(1)],
      [
        () => sse(message(entry(2)), 'event: end\ndata: {"reason":"draining"}'),
        () => errorResponse(503, 'UNAVAILABLE', 'Restarting.'),
        // A partial entry, as when a server is killed.
        () => sse(message(entry(3)), 'id: evt_left_out_by_a_filter', ': heartbeat'),
        () =>
          new Response('id: evt_half\ndata: {"id":', { headers: { 'content-type': 'text/event-stream' } }),
        () => sse(message(entry(4))),
      ],
    )
    const result = await cli.home.otpd(['logs', '--tail', '--limit', '1'])
    expect(afterParams).toEqual([
      eventId(1),
      eventId(2),
      eventId(2),
      'evt_left_out_by_a_filter',
      'evt_left_out_by_a_filter',
      eventId(4),
    ])
    expect(result.stdout.match(/otp\.sent/g)).toHaveLength(4)
    expect(result.stderr).toContain('── the server is shutting down, retrying ──')
    expect(result.stderr).toMatch(/── reconnected after .*, no events missed ──/)
    expect(result.stderr).toContain('── the connection was lost, retrying ──')
  })

  test('renews an expired token silently', async () => {
    serveLog([], [() => sse('event: end\ndata: {"reason":"token_expired"}'), () => sse(message(entry(1)))])
    const result = await cli.home.otpd(['logs', '--tail'])
    expect(result.stderr.split('──')[0]).toContain('Ctrl+C')
    expect(result.stderr).not.toContain('the token ended')
    expect(result.stdout).toContain('otp.sent')
  })

  test('filters by phone here, by type and application at the server', async () => {
    serveLog([], [() => sse(message(entry(1)), message(entry(2, { phone: '+442071838750' })))])
    const flags = ['--phone', '+44 20 7183 8750', '--type', 'otp.sent, otp.failed', '--app', appId]
    const result = await cli.home.otpd(['logs', '--tail', '--json', ...flags])
    expect(idsIn(result.stdout)).toEqual([eventId(2)])
    const stream = cli.server.requests.find(({ path }) => path.startsWith('/v1/logs/stream'))
    expect(new URL(stream?.path ?? '', 'http://x').searchParams.get('type')).toBe('otp.sent,otp.failed')
    expect(stream?.path).toContain(`appId=${appId}`)
  })

  test('of a request starts at an entry of the log, and shows none twice', async () => {
    const requestId = 'otp_01arz3ndektsv4rrffq69g5fav'
    const attempt = entry(3, { id: `att_${'0'.repeat(26)}`, type: 'delivery.attempted', outcome: 'accepted' })
    const afterParams: Array<string | null> = []
    cli.respond = ({ path }: RecordedRequest) => {
      const { pathname, searchParams } = new URL(path, 'http://x')
      if (pathname.startsWith('/v1/otp')) return pageResponse({ id: requestId })
      if (pathname === '/v1/applications') return apps()
      if (pathname === '/v1/logs')
        return searchParams.has('requestId') ? pageResponse(entry(2), attempt) : pageResponse(entry(1))
      afterParams.push(searchParams.get('after'))
      if (afterParams.length > 1) return errorResponse(401, 'UNAUTHENTICATED', 'The token has expired.')
      return sse(message(entry(2)), message(entry(4)), message(entry(5, { requestId: 'otp_other' })))
    }
    const result = await cli.home.otpd(['logs', '--tail', '--json', '--request', requestId])
    expect(idsIn(result.stdout)).toEqual([eventId(2), attempt.id, eventId(4)])
    expect(afterParams[0]).toBe(eventId(1))
  })

  test('says what to do about the token of OTPD_TOKEN, which a login does not replace', async () => {
    serveLog([entry(1)], [() => sse(message(entry(2)))])
    const result = await cli.home.otpd(['logs', '--tail'], { env: { OTPD_TOKEN: 'otpd_pat_1' } })
    expect(result.exitCode).toBe(4)
    expect(result.stderr).toContain(
      'The token came from OTPD_TOKEN.\n  Set a new OTPD_TOKEN, or unset it and use: otpd login\n',
    )
  })

  test('fails when the server rejects the first connection', async () => {
    serveLog(
      [],
      [
        () =>
          errorResponse(429, 'RATE_LIMITED', 'Too many streams are open. Close one.', {
            'retry-after': '10',
          }),
      ],
    )
    const result = await cli.home.otpd(['logs', '--tail'])
    expect(result.exitCode).toBe(7)
    expect(result.stderr).toContain('Too many streams are open')
  })
})
