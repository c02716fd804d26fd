import type { Delivery } from '../model/delivery.ts'
import type { Developer } from '../model/developer.ts'
import type { Keys } from '../model/keys.ts'
import { deriveStoredCode } from '../model/code.ts'
import { isVerifiable } from '../model/request.ts'
import { toPage, readSeqCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'
import { dayMs } from '../../shared/durations.ts'
import type { ListedMessage } from '../store/inbox.ts'

export type InboxItem = {
  id: string
  requestId: string | null
  appId: string | null
  phone: string
  /** Code and text are null once the request is closed. */
  code: string | null
  text: string | null
  sentAt: number
  expiresAt: number
}

export const inboxLifetimeMs = dayMs

export type InboxService = ReturnType<typeof createInboxService>

/**
 * Lists the messages that developers receive instead of a phone.
 *
 * @param needs.render renders the text of a message
 */
export function createInboxService(needs: {
  store: Store<'inbox'>
  clock: Clock
  keys: Keys
  render: Delivery['render']
}) {
  const { store, clock, keys, render } = needs
  return {
    /** Lists the messages of the last 24 hours, newest first. @throws INVALID_ARGUMENT (CURSOR_INVALID) */
    async list(developer: Pick<Developer, 'id'>, page: PageRequest): Promise<Page<InboxItem>> {
      const now = clock.now()
      const before = readSeqCursor(page)
      const rows = await store.read.inbox.list(developer.id, now - inboxLifetimeMs, page.limit + 1, before)
      const messagePage = toPage(rows, page.limit, ({ seq }) => String(seq))
      return { ...messagePage, items: messagePage.items.map((row) => toInboxItem(row, now)) }
    },
  }

  function toInboxItem(message: ListedMessage, now: number): InboxItem {
    const { request, application, sentAt } = message
    const isPending = isVerifiable(request, now)
    const code = isPending ? deriveStoredCode(keys, request) : null
    return {
      id: message.eventId,
      requestId: message.requestVisible ? request.id : null,
      appId: message.requestVisible ? request.appId : null,
      phone: request.phone,
      code,
      text: code === null ? null : render(request, code, application, sentAt),
      sentAt,
      expiresAt: request.expiresAt,
    }
  }
}
