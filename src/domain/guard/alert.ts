import { toIsoTime, type EventTables } from '../log/events.ts'
import type { GuardAlert } from '../model/guard.ts'
import type { NewId } from '../model/ids.ts'
import type { OtpRequest } from '../model/request.ts'
import { formatGuardAlert } from '../../shared/guard-alert.ts'
import type { Stores } from '../store/store.ts'

/**
 * Records an alert: a log entry of the application whose message raised it, and a webhook delivery for each endpoint of any of their applications
 * that subscribes to it. Part of the transaction of the message that raised it.
 */
export async function recordGuardAlert(
  tx: Pick<Stores, EventTables>,
  newId: NewId,
  { developerId, appId }: Pick<OtpRequest, 'developerId' | 'appId'>,
  alert: GuardAlert,
  at: number,
): Promise<void> {
  const type = 'guard.alert'
  const subscribers = (await tx.webhookEndpoints.subscribersOfDeveloper(developerId)).filter(
    ({ events }) => events.includes(type) || events.includes('*'),
  )
  const detail = formatGuardAlert(alert)
  const entry = { type, developerId, appId, requestId: null, phone: null, status: null, detail, at } as const
  const toPayload = (id: string) => JSON.stringify({ id, type, timestamp: toIsoTime(at), data: alert })
  const seq = await tx.events.insert(entry, subscribers.length > 0 ? toPayload : undefined)
  for (const { id: endpointId } of subscribers)
    await tx.webhookOutbox.insert({ id: newId('dlv'), endpointId, eventSeq: seq, type, now: at })
}
