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

/** More pages than a server would remember. */
const pagesMax = 1000

type LogPage = { pagination: { nextCursor: string | null } }

/** Reads through the log. @returns the path of each page, newest first */
async function listLogPages(url: string, headers: Record<string, string>): Promise<string[]> {
  const pages: string[] = []
  let path: string | undefined = paths.logs
  while (path !== undefined && pages.length < pagesMax) {
    pages.push(path)
    const { pagination }: LogPage = await call(url + path, { headers })
    path = pagination.nextCursor === null ? undefined : `${paths.logs}&cursor=${pagination.nextCursor}`
  }
  return pages
}

/**
 * Reads of a console, compared with a route that only returns the same log page. One developer has all applications, so
 * that the log has tens of thousands of entries.
 */
export const reads: BenchCase = {
  rows: {
    page: 'Elysia: the same page of the log',
    logs: 'otpd: the newest 50 of the log, again and again',
    'log-pages': 'otpd: 50 of the log, page after page',
    summary: 'otpd: summary',
    series: 'otpd: series of 90 days',
  },
  async run(context) {
    const { folder, loadSettings } = context
    const file = join(folder, 'page.json')
    const samples: Record<string, Sample> = {}
    await withServer(await startOtpd(context, { developers: 1 }), async (otpd) => {
      const url = `http://127.0.0.1:${otpd.port}`
      const headers = otpd.developers[0]?.headers ?? {}
      await measureFlow(otpd, loadSettings, true)
      writeFileSync(file, JSON.stringify(await call(url + paths.logs, { headers })))
      for (const [row, path] of Object.entries(paths)) {
        samples[row] = await measureRepeated(otpd, [encodeRequest(path, headers)], loadSettings)
      }
      const pages = await listLogPages(url, headers)
      samples['log-pages'] = await measureRepeated(
        otpd,
        pages.map((path) => encodeRequest(path, headers)),
        loadSettings,
      )
    })
    const server = await startServer([process.execPath, join(import.meta.dir, 'servers/page.ts'), file])
    return withServer(server, async () => {
      const page = await measureRepeated(server, [encodeRequest('/v1/logs', {})], loadSettings)
      return { page, ...samples }
    })
  },
}
