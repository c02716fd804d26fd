import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withServer, type BenchCase } from './bench-case.ts'
import { encodeRequest } from './load.ts'
import { startServer } from './machine.ts'
import { call, startOtpd } from './otpd.ts'
import { measureFlow, measureRepeated, type Sample } from './service.ts'

const paths = {
  logs: '/v1/logs?limit=50',
  summary: '/v1/analytics/summary',
  series: '/v1/analytics/timeseries?range=90d',
}

/** Reads of a console over tens of thousands of events, compared with a route that only returns the same log page. */
export const reads: BenchCase = {
  rows: {
    page: 'Elysia: the same page of the log',
    logs: 'otpd: a page of 50 of the log',
    summary: 'otpd: summary',
    series: 'otpd: series of 90 days',
  },
  async run(context) {
    const { folder, loadSettings } = context
    const file = join(folder, 'page.json')
    const samples: Record<string, Sample> = {}
    await withServer(await startOtpd(context), async (otpd) => {
      const { headers } = otpd.console
      await measureFlow(otpd, loadSettings, true)
      writeFileSync(
        file,
        JSON.stringify(await call(`http://127.0.0.1:${otpd.port}${paths.logs}`, { headers })),
      )
      for (const [row, path] of Object.entries(paths)) {
        samples[row] = await measureRepeated(otpd, encodeRequest(path, headers), loadSettings)
      }
    })
    const server = await startServer([process.execPath, join(import.meta.dir, 'servers/page.ts'), file])
    return withServer(server, async () => {
      const page = await measureRepeated(server, encodeRequest('/v1/logs', {}), loadSettings)
      return { page, ...samples }
    })
  },
}
