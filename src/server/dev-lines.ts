import type { Config } from '../config/config.ts'
import type { InboxItem, InboxService } from '../domain/otp/inbox.ts'
import type { CompletedRequest } from '../http/request-log.ts'
import type { Log } from '../log/log.ts'

/** A line that a server prints in development mode, and in no other: it may hold a code. */
export type DevLine =
  | ({ kind: 'request' } & Pick<CompletedRequest, 'method' | 'route' | 'status' | 'durationMs'>)
  | ({ kind: 'code' } & Pick<InboxItem, 'phone' | 'requestId'> & { code: string })

const recentItems = 20

/**
 * Reports the codes that arrive in inboxes.
 *
 * @returns called with the id of a developer who may have a new message
 */
export function createCodeReporter(inbox: () => InboxService, report: (line: DevLine) => void) {
  const reported = new Set<string>()
  let reading = Promise.resolve()
  const read = async (id: string) => {
    const { items } = await inbox().list({ id }, { limit: recentItems, cursor: undefined })
    for (const { id: itemId, phone, code, requestId } of items.toReversed()) {
      if (code === null || reported.has(itemId)) continue
      reported.add(itemId)
      report({ kind: 'code', phone, code, requestId })
    }
  }
  return (developerId: string) => {
    // A code that cannot be read is not worth a fault.
    reading = reading.then(() => read(developerId)).catch(() => {})
  }
}

/** Chooses what each request is reported to; undefined if to nothing. */
export function requestReporter(
  config: Pick<Config, 'dev' | 'log'>,
  log: Log,
  report: ((line: DevLine) => void) | undefined,
): ((completed: CompletedRequest) => void) | undefined {
  if (config.dev && report) return (completed) => report({ kind: 'request', ...completed })
  return config.log.level === 'debug' ? (completed) => log.debug('request', completed) : undefined
}
