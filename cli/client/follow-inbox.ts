import type { Api } from './api.ts'
import type { Io } from '../terminal/io.ts'
import { CliError, isRetryable } from '../terminal/errors.ts'
import { whenAborted } from '../terminal/interrupt.ts'
import { connectionLost, type ConnectionEvent } from './follow-log.ts'
import type { InboxItem } from './resources.ts'

type InboxEvent = { kind: 'message'; item: InboxItem } | ConnectionEvent

const pollIntervalMs = 1000

/**
 * Yields new inbox messages, oldest first, each once. Polls, because a message that another developer sends to the
 * user's virtual number is not in the user's log stream.
 *
 * @param recentItems newest page so far; its messages are not yielded
 * @param signal ends the generator without an error
 * @throws CliError when a retry cannot help
 */
export async function* followInbox(
  io: Io,
  api: Api,
  { recentItems, signal }: { recentItems: InboxItem[]; signal: AbortSignal },
): AsyncGenerator<InboxEvent> {
  let newestPage = recentItems
  let disconnectedAt: number | null = null
  const interruption = whenAborted(signal)
  for (;;) {
    await Promise.race([io.sleep(pollIntervalMs), interruption])
    if (signal.aborted) return
    const update = await Promise.race([findNew(api, newestPage), interruption]).catch((error: unknown) => {
      if (error instanceof CliError && isRetryable(error)) return null
      throw error
    })
    if (update === undefined) return
    if (update === null) {
      if (disconnectedAt === null) yield { kind: 'disconnected', reason: connectionLost }
      disconnectedAt ??= io.now()
      continue
    }
    if (disconnectedAt !== null) yield { kind: 'reconnected', afterMs: io.now() - disconnectedAt }
    disconnectedAt = null
    for (const item of update.items) yield { kind: 'message', item }
    newestPage = update.newest
  }
}

/**
 * Finds the messages newer than `knownItems`, over as many pages as it takes. Stops at any known message, because the
 * newest one may have been deleted.
 */
async function findNew(api: Api, knownItems: InboxItem[]) {
  const ids = new Set(knownItems.map(({ id }) => id))
  const items: InboxItem[] = []
  let newestPage: InboxItem[] | undefined
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await api.asDeveloper('GET', '/v1/inbox', { query: { ...(cursor && { cursor }) } })
    newestPage ??= page.data
    const knownIndex = page.data.findIndex(({ id }) => ids.has(id))
    items.push(...(knownIndex === -1 ? page.data : page.data.slice(0, knownIndex)))
    cursor = knownIndex === -1 ? page.nextCursor : null
  }
  return { items: items.toReversed(), newest: newestPage ?? [] }
}
