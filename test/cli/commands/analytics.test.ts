import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { sparkline } from '../../../cli/terminal/sparkline.ts'
import { createCliFixture, errorResponse, pageResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const summary = { applications: 3, otpRequests: 4000, otpVerified: 3700, successRate: 93, activeUsers: 8214 }
const days = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    date: `2026-11-${String(index + 1).padStart(2, '0')}`,
    sent: 100 * (index + 1),
    verified: 90 * (index + 1),
    failed: index === count - 1 ? 7 : 0,
  }))
const bodies = { summary: JSON.stringify({ data: summary }), days: JSON.stringify({ data: days(7) }) }
const respond = ({ path }: { path: string }) =>
  new Response(path.startsWith('/v1/analytics/summary') ? bodies.summary : bodies.days)

describe('analytics', () => {
  test('draws a line of bars for each count, with the totals, today and the rates', async () => {
    cli.respond = respond
    const { stdout, exitCode } = await cli.home.otpd(['analytics', '--range', '7d'])
    expect(exitCode).toBe(0)
    expect(cli.server.requests.map(({ path }) => path).toSorted()).toEqual([
      '/v1/analytics/summary',
      '/v1/analytics/timeseries?range=7d',
    ])
    expect(stdout.split('\n')).toEqual([
      'Last 7 days          total   today',
      'sent      ▂▃▄▅▆▇█    2,800     700',
      'verified  ▂▃▄▅▆▇█    2,520     630  90%',
      'failed    ······█        7       7   0%',
      'applications 3, active users 8,214, success 93% overall',
      '',
    ])
  })

  test.each([60, 80])('fits a terminal of %i columns', async (columns) => {
    cli.respond = ({ path }) =>
      path.includes('summary') ? new Response(bodies.summary) : Response.json({ data: days(90) })
    const { stdout } = await cli.home.otpd(['analytics', '--range', '90d'], { columns })
    for (const line of Bun.stripANSI(stdout).split('\n'))
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  })

  test('without codes says what to do', async () => {
    cli.respond = ({ path }) =>
      Response.json({ data: path.includes('summary') ? { ...summary, otpRequests: 0 } : days(7) })
    expect((await cli.home.otpd(['analytics'])).stdout).toStartWith('No codes yet.')
  })

  test('with --json is the body of the API: the days, or the summary if it is named', async () => {
    cli.respond = respond
    expect((await cli.home.otpd(['analytics', '--json'])).stdout).toBe(`${bodies.days}\n`)
    expect((await cli.home.otpd(['analytics', 'summary', '--json'])).stdout).toBe(`${bodies.summary}\n`)
  })

  test('with --csv has a header line and plain numbers', async () => {
    cli.respond = respond
    const series = await cli.home.otpd(['analytics', 'timeseries', '--csv'])
    expect(series.stdout.split('\n').slice(0, 2)).toEqual([
      'date,sent,verified,failed',
      '2026-11-01,100,90,0',
    ])
    expect((await cli.home.otpd(['analytics', 'summary', '--csv'])).stdout).toBe(
      'applications,otpRequests,otpVerified,successRate,activeUsers\n3,4000,3700,93,8214\n',
    )
  })

  test.each(['summary --range 7d', '--csv --json', '--watch', '--range 8d'])('rejects %s', async (flags) => {
    const result = await cli.home.otpd(['analytics', ...flags.split(' ')])
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(cli.server.requests).toEqual([])
  })

  test('--watch redraws in place every five seconds', async () => {
    const from = cli.home.clock.nowMs
    cli.respond = (recordedRequest) =>
      cli.home.clock.nowMs - from < 10_000
        ? respond(recordedRequest)
        : errorResponse(404, 'NOT_FOUND', 'Enough.')
    const result = await cli.home.otpd(['analytics', 'timeseries', '--watch'], { columns: 80 })
    expect(result.exitCode).toBe(5)
    const [first = '', second = '', ...rest] = result.stdout.split('\u001b[8A\u001b[0J')
    expect(first.trimEnd().split('\n')).toHaveLength(8)
    expect(second).toBe(first)
    expect(rest).toEqual([])
  })

  test('--watch keeps the last frame while the server is unreachable, says so, and continues', async () => {
    const responders = [respond, () => errorResponse(503, 'UNAVAILABLE', 'Restarting.'), respond]
    cli.respond = (recordedRequest) =>
      (responders.shift() ?? (() => errorResponse(404, 'NOT_FOUND', 'Enough.')))(recordedRequest)
    const result = await cli.home.otpd(['analytics', 'timeseries', '--watch'], { columns: 80 })
    const [first = '', lost = '', eraseSequence] = result.stdout
      .replace('\u001b[9A', '\u001b[8A')
      .split('\u001b[8A\u001b[0J')
    expect(Bun.stripANSI(lost)).toBe(`${Bun.stripANSI(first)}── the connection was lost, retrying ──\n`)
    expect(eraseSequence).toBe(first)
    expect(result.exitCode).toBe(5)
  })

  test('--watch fails when the server is unreachable at the start', async () => {
    await cli.server.stop()
    const result = await cli.home.otpd(['analytics', 'timeseries', '--watch'], { columns: 80 })
    expect(result.exitCode).toBe(3)
    expect(result.stderr).toContain(`Cannot reach ${cli.server.url}`)
  })
})

describe('a sparkline', () => {
  test('distinguishes zero from a small count', () => expect(sparkline([0, 1, 1000], 10)).toBe('·▁█'))

  test('sums neighbours when there are too few columns, with a full group in the last bar', () =>
    expect(sparkline([4, 1, 1, 1, 1], 3)).toBe('█▄▄'))

  test('of zeros is flat', () => expect(sparkline([0, 0], 10)).toBe('··'))
})

describe('analytics --by', () => {
  const counts = { delivered: 0, undelivered: 1, verified: 600, failed: 0, conversion: 50 }
  const rows = [
    { key: 'DE', name: 'Germany, "DE"', sent: 1200, ...counts },
    { key: null, name: null, sent: 3, ...counts },
  ]

  test('prints a line for each, and CSV with quotes where they are needed', async () => {
    cli.respond = () => pageResponse(...rows)
    const { stdout } = await cli.home.otpd(['analytics', '--by', 'country', '--range', '7d', '--env', 'live'])
    expect(cli.server.requests[0]?.path).toBe('/v1/analytics/breakdown?by=country&range=7d&environment=live')
    expect(stdout).toMatch(/^COUNTRY +SENT +DELIVERED +UNDELIVERED +VERIFIED +FAILED +CONVERSION\n/)
    expect(stdout).toMatch(/\nGermany, "DE" +1,200 +0 +1 +600 +0 +50%\nunknown +3 /)
    const csv = await cli.home.otpd(['analytics', '--by', 'country', '--csv'])
    expect(csv.stdout.split('\n')[1]).toBe('DE,"Germany, ""DE""",1200,0,1,600,0,50')
  })

  test.each(['summary --by country', '--by country --app web', 'summary --app web'])(
    'refuses %s, which would be ignored',
    async (args) => {
      expect((await cli.home.otpd(['analytics', ...args.split(' ')])).exitCode).toBe(2)
      expect(cli.server.requests).toEqual([])
    },
  )
})
