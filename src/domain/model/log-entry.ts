import type { LogType } from '../../shared/event-kinds.ts'

export type LogEntry = {
  /** Increases in commit order. */
  seq: number
  id: string
  type: LogType
  developerId: string
  appId: string | null
  requestId: string | null
  phone: string | null
  /** Status of the OTP request after the event. */
  status: string | null
  detail: string | null
  at: number
}

export type NewLogEntry = Omit<LogEntry, 'seq' | 'id'>
