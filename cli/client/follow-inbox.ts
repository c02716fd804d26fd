import type { Api } from './api.ts'
import type { Context } from '../context.ts'
import { CliError } from '../terminal/errors.ts'
import { isPassing } from './follow-log.ts'
import { aborted } from '../terminal/interrupt.ts'
import type { InboxItem } from './resources.ts'

export type FollowedMessage =
  | { kind: 'message'; item: InboxItem }
  /** The server does not answer; it is asked again until it does. */
  | { kind: 'lost' }
  | { kind: 'back'; afterMs: number }

const pauseMs = 1000

/**
 * The messages that come into the inbox, oldest first, each once. It is asked for again and again: messages that another
 * developer sends to a virtual number are in no log of its owner.
 *
 * Throws CliError where asking again would change nothing.
 *
 * @param known the newest page so far: what is on it is told already
 * @param signal ends the following without an error
 */
export async function* followInbox(
  { io }: Context,
  api: Api,
  { known, signal }: { known: InboxItem[]; signal: AbortSignal },
): AsyncGenerator<FollowedMessage> {
  let newest = known
  let lostAt: number | null = null
  const interrupted = aborted(signal)
  for (;;) {
    await Promise.race([io.sleep(pauseMs), interrupted])
    if (signal.aborted) return
    const found = await Promise.race([findNew(api, newest), interrupted]).catch((error: unknown) => {
      if (error instanceof CliError && isPassing(error)) return null
      throw error
    })
    if (found === undefined) return
    if (found === null) {
      if (lostAt === null) yield { kind: 'lost' }
      lostAt ??= io.now()
      continue
    }
    if (lostAt !== null) yield { kind: 'back', afterMs: io.now() - lostAt }
    lostAt = null
    for (const item of found.items) yield { kind: 'message', item }
    newest = found.newest
  }
}

/** What came since that page, however much it is. Of the page any message will do to know where it was: they may go. */
async function findNew(api: Api, known: InboxItem[]) {
  const ids = new Set(known.map(({ id }) => id))
  const items: InboxItem[] = []
  let newest: InboxItem[] | undefined
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await api.asDeveloper('GET', '/v1/inbox', { query: { ...(cursor && { cursor }) } })
    newest ??= page.data
    const place = page.data.findIndex(({ id }) => ids.has(id))
    items.push(...(place === -1 ? page.data : page.data.slice(0, place)))
    cursor = place === -1 ? page.nextCursor : null
  }
  return { items: items.toReversed(), newest: newest ?? [] }
}
