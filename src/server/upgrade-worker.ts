import { statSync, writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { secondMs } from '../shared/durations.ts'
import { readRegularFile } from '../shared/regular-file.ts'
import type { ProgressStep } from '../shared/progress.ts'
import { createEstimate, type ProgressEstimate } from '../shared/progress-estimate.ts'
import { writeUpgradeProgress } from '../store/data-dir/server-record.ts'
import type { UpgradeNoticeInput } from './upgrade-notice.ts'

// Answers for the server while its database is migrated: SQLite runs a migration in one call, for minutes, in which the main
// thread answers nothing. The process is alive, so that no supervisor restarts it, and not ready.

const logEverySeconds = 10
const retryAfterMaxSeconds = 60

function reportUpgrade({ listen, tls, dataDir, logsJson }: UpgradeNoticeInput) {
  const fileSize = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? null
  const estimate = createEstimate(() => performance.now(), fileSize)
  const starting = readPair(tls, dataDir)
    .catch(() => undefined)
    .then((pair) => startAnswering(listen, pair, estimate.read))
  let ticks = 0
  const tick = () => {
    const progress = estimate.read()
    if (!progress) return
    const { step, percent, remainingMs } = progress
    const fields = {
      step,
      percent,
      ...(remainingMs !== null && { remainingSeconds: toSeconds(remainingMs) }),
    }
    attempt(() => writeUpgradeProgress(dataDir, fields))
    if (!logsJson || ++ticks % logEverySeconds !== 0) return
    const line = { level: 'info', msg: 'upgrading the database', ...fields, time: new Date().toISOString() }
    attempt(() => writeSync(2, `${JSON.stringify(line)}\n`))
  }
  const timer = setInterval(tick, secondMs)

  const end = async () => {
    clearInterval(timer)
    const server = await starting
    await server?.stop(true)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- exists for windows only
    parentPort?.postMessage('ended')
  }
  parentPort?.on('message', (step: ProgressStep | 'end') => {
    if (step === 'end') void end()
    else estimate.onStep(step)
  })
}

type Pair = { certificate: string; key: string }

/** Reads the certificate of HTTPS; undefined if there is none yet. @throws Error it cannot be read */
async function readPair(tls: UpgradeNoticeInput['tls'], dataDir: string): Promise<Pair | 'none' | undefined> {
  if (tls === null) return 'none'
  const { certificate } = tls
  if (certificate.kind === 'files')
    return {
      certificate: readRegularFile(certificate.certFile).toString(),
      key: readRegularFile(certificate.keyFile).toString(),
    }
  const { readSaved, tlsFolder } = await import('../tls/tls.ts')
  return readSaved(tlsFolder(dataDir))?.pair
}

/** Answers on the port of the server. A port that cannot be bound is reported when the server itself starts to listen. */
function startAnswering(
  { host, port }: UpgradeNoticeInput['listen'],
  pair: Pair | 'none' | undefined,
  read: () => ProgressEstimate | undefined,
) {
  if (port === 0 || pair === undefined) return undefined
  return attempt(() =>
    Bun.serve({
      hostname: host,
      port,
      ...(pair !== 'none' && { tls: { cert: pair.certificate, key: pair.key } }),
      fetch: ({ url }) => respond(new URL(url).pathname, read()),
    }),
  )
}

function respond(path: string, progress: ProgressEstimate | undefined): Response {
  if (path === '/v1/health')
    return Response.json({
      data: { status: 'operational', service: 'otpd', time: new Date().toISOString() },
    })
  const { percent, remainingMs } = progress ?? { percent: 0, remainingMs: null }
  const seconds = toSeconds(remainingMs ?? secondMs)
  const left = remainingMs === null ? '' : `, about ${seconds} s left`
  const traceId = `req_${crypto.randomUUID()}`
  const error = {
    code: 'UNAVAILABLE',
    message: `The server is upgrading its database (${percent} %${left}). Try again.`,
    traceId,
  }
  const body = path === '/v1/health/ready' ? { data: { status: 'not_ready', cause: 'upgrade' } } : { error }
  const headers = {
    'retry-after': String(Math.min(retryAfterMaxSeconds, seconds)),
    'cache-control': 'no-store',
    'x-request-id': traceId,
    // The next call is for the server itself.
    connection: 'close',
  }
  return Response.json(body, { status: 503, headers })
}

const toSeconds = (ms: number) => Math.max(1, Math.ceil(ms / secondMs))

/** Runs what the upgrade does not depend on. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

reportUpgrade(workerData)
