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

describe('analytics costs', () => {
  const money = {
    currency: 'EUR',
    estimatedCost: '1',
    unpriced: 2,
    relayed: 0,
    relayedCost: '0',
    blocked: 0,
    medianSeconds: 12,
  }
  const row = (
    provider: string,
    [key, name]: [string, string],
    sent: number,
    [cost, costPerVerified, saved = null]: [string, string | null, (string | null)?],
  ) => ({
    key,
    name,
    sent,
    delivered: sent,
    undelivered: 0,
    verified: sent / 2,
    failed: 0,
    conversion: 50,
    ...money,
    cost,
    costPerVerified,
    provider,
    saved,
  })
  const germany = ['DE', 'Germany'] as [string, string]
  const respondCosts = (saved: string | null) => () =>
    pageResponse(
      row('spare', germany, 10, ['1234.5', null, saved]),
      row('main', germany, 20, ['2.0345', '0.20345', saved && '0']),
      row('main', ['US', 'United States'], 10, ['0.079', '0.0158']),
    )

  test('lists what each country costs by provider, the dearest first, and the sum', async () => {
    cli.respond = respondCosts(null)
    const { stdout } = await cli.home.otpd(['analytics', 'costs', '--range', '7d'])
    expect(cli.server.requests.map(({ path }) => path)).toEqual(['/v1/analytics/costs?range=7d'])
    expect(stdout.split('\n').map((line) => line.trimEnd().replaceAll(/ {2,}/g, ' | '))).toEqual([
      'COUNTRY | PROVIDER | SENT | VERIFIED | CONVERSION | COST (EUR) | PER VERIFIED | MEDIAN',
      'Germany | spare | 10 | 5 | 50% | 1,234.50 | - | 12 s',
      'Germany | main | 20 | 10 | 50% | 2.03 | 0.2035 | 12 s',
      'United States | main | 10 | 5 | 50% | 0.08 | 0.0158 | 12 s',
      '',
      'Total: 1,236.61 EUR for 40 messages, 61.8307 per verified code',
      'Estimated by your prices: 3.00 EUR',
      'Without a price: 6 messages, which are not in the cost',
      '',
    ])
  })

  test('show what strategies saved, in a column and in the sum', async () => {
    cli.respond = respondCosts('-1.25')
    const { stdout } = await cli.home.otpd(['analytics', 'costs'])
    expect(stdout.split('\n').map((line) => line.trimEnd().replaceAll(/ {2,}/g, ' | '))).toEqual([
      'COUNTRY | PROVIDER | SENT | VERIFIED | CONVERSION | COST (EUR) | PER VERIFIED | SAVED | MEDIAN',
      'Germany | spare | 10 | 5 | 50% | 1,234.50 | - | -1.25 | 12 s',
      'Germany | main | 20 | 10 | 50% | 2.03 | 0.2035 | 0.00 | 12 s',
      'United States | main | 10 | 5 | 50% | 0.08 | 0.0158 | - | 12 s',
      '',
      'Total: 1,236.61 EUR for 40 messages, 61.8307 per verified code',
      'Strategies cost about 1.25 EUR more, compared with the fixed order',
      'Estimated by your prices: 3.00 EUR',
      'Without a price: 6 messages, which are not in the cost',
      '',
    ])
  })

  test('say what codes of other systems cost, apart from the cost per verified code', async () => {
    const relayed = { ...row('main', germany, 10, ['3', '0.2']), relayed: 40, relayedCost: '2', unpriced: 0 }
    cli.respond = () => pageResponse(relayed)
    const { stdout } = await cli.home.otpd(['analytics', 'costs'])
    expect(stdout.split('\n').map((line) => line.trimEnd().replaceAll(/ {2,}/g, ' | '))).toEqual([
      'COUNTRY | PROVIDER | SENT | RELAYED | VERIFIED | CONVERSION | COST (EUR) | PER VERIFIED | MEDIAN',
      'Germany | main | 10 | 40 | 5 | 50% | 3.00 | 0.2000 | 12 s',
      '',
      'Total: 3.00 EUR for 50 messages, 0.2000 per verified code',
      'Estimated by your prices: 1.00 EUR',
      'Codes of other systems: 40 messages for 2.00 EUR, not in the cost per verified code',
      '',
    ])
  })

  test('as CSV have a line for each country and provider', async () => {
    cli.respond = respondCosts(null)
    const { stdout } = await cli.home.otpd(['analytics', 'costs', '--csv'])
    const heading =
      'country,name,provider,sent,delivered,undelivered,verified,failed,conversion,blocked,medianSeconds,currency,cost,estimatedCost,costPerVerified,unpriced,relayed,relayedCost,saved'
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      heading,
      'DE,Germany,spare,10,10,0,5,0,50,0,12,EUR,1234.5,1,,2,0,0,',
    ])
    const json = await cli.home.otpd(['analytics', 'costs', '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({
      data: [{ key: 'DE', provider: 'spare', cost: '1234.5' }, {}, {}],
    })
    cli.respond = respondCosts('-1.25')
    const negative = await cli.home.otpd(['analytics', 'costs', '--csv'])
    expect(negative.stdout.split('\n')[1]).toEndWith(',-1.25')
    cli.respond = () => pageResponse()
    expect((await cli.home.otpd(['analytics', 'costs', '--csv'])).stdout).toBe(`${heading}\n`)
  })

  test('without a currency say what the operator does', async () => {
    cli.respond = () => pageResponse({ ...row('main', germany, 2, ['0', null]), cost: null, currency: null })
    expect((await cli.home.otpd(['analytics', 'costs'])).stdout).toContain(
      'The operator sets prices.currency',
    )
    cli.respond = () => pageResponse()
    expect((await cli.home.otpd(['analytics', 'costs'])).stdout).toContain('No codes were sent')
  })

  test.each([60, 80])('fit a terminal of %i columns', async (columns) => {
    cli.respond = respondCosts('-1.25')
    const { stdout } = await cli.home.otpd(['analytics', 'costs'], { columns })
    for (const line of Bun.stripANSI(stdout).split('\n').slice(0, 4))
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  })
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
    expect(stdout).toMatch(
      /^COUNTRY +SENT +DELIVERED +UNDELIVERED +VERIFIED +FAILED +CONVERSION +MEDIAN +FILTERED\n/,
    )
    expect(stdout).toMatch(/\nGermany, "DE" +1,200 +0 +1 +600 +0 +50% .*\nunknown +3 /)
    const byProvider = await cli.home.otpd(['analytics', '--by', 'provider'])
    expect(byProvider.stdout).toMatch(/\nnone +3 /)
    const csv = await cli.home.otpd(['analytics', '--by', 'country', '--csv'])
    expect(csv.stdout.split('\n')[1]).toBe('DE,"Germany, ""DE""",1200,0,1,600,0,50,,,,,,,,,')
    cli.respond = () => pageResponse()
    const empty = await cli.home.otpd(['analytics', '--by', 'country', '--csv'])
    expect(empty.stdout).toMatch(/^key,name,sent,[^\n]*\n$/)
  })

  test.each([
    ['=1+1', "'=1+1"],
    ['+1 shop', "'+1 shop"],
    ['-2+3', "'-2+3"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['=HYPERLINK("https://x.test","a")', `"'=HYPERLINK(""https://x.test"",""a"")"`],
    ['a=b', 'a=b'],
  ])('keeps spreadsheets from running the name %s', async (name, cell) => {
    cli.respond = () => pageResponse({ ...counts, key: 'app_1', name, sent: 1 })
    const { stdout } = await cli.home.otpd(['analytics', '--by', 'application', '--csv'])
    expect(stdout.split('\n')[1]).toStartWith(`app_1,${cell},1,`)
  })

  test('refuses a channel that does not exist, which would have no codes', async () => {
    const result = await cli.home.otpd(['analytics', '--by', 'country', '--channel', 'fax'])
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(result.stderr).toContain('sms, whatsapp, telegram, voice, rcs, silent')
    expect(cli.server.requests).toEqual([])
  })

  test('is restricted to one country, channel or provider', async () => {
    cli.respond = () => pageResponse(...rows)
    await cli.home.otpd([
      'analytics',
      '--by',
      'provider',
      '--country',
      'de',
      '--channel',
      'sms',
      '--provider',
      'main',
    ])
    expect(cli.server.requests[0]?.path).toBe(
      '/v1/analytics/breakdown?by=provider&range=30d&country=DE&channel=sms&provider=main',
    )
  })

  test.each([
    'summary --by country',
    '--by country --app web',
    'summary --app web',
    'costs --app web',
    '--country DE',
  ])('refuses %s, which would be ignored', async (args) => {
    expect((await cli.home.otpd(['analytics', ...args.split(' ')])).exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })
})
