import type { OtpRequest } from '../model/request.ts'
import type { MessageSettings } from '../model/message-settings.ts'
import type { DeleteOldest } from './delete-oldest.ts'

/** A message in a developer's inbox. Never holds its text, which is rendered when it is read. */
export type InboxMessage = {
  /** Sequence number of its `otp.sent` log entry. */
  seq: number
  developerId: string
  requestId: string
  /** 0 if another developer sent it, whose ids must stay hidden; otherwise 1. */
  requestVisible: number
  sentAt: number
}

export type ListedMessage = InboxMessage & {
  /** Id of its `otp.sent` log entry. */
  eventId: string
  request: OtpRequest
  /** Null once the application is deleted. */
  application: MessageSettings | null
}

export type InboxStore = {
  insert(messages: readonly InboxMessage[]): void
  /** Lists the messages since a time, newest first, with their requests and message settings. */
  list(developerId: string, since: number, limit: number, before?: number): Promise<ListedMessage[]>
  deleteOldest: DeleteOldest
}
