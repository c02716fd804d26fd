import type { WebhookAttempt } from '../domain/webhooks/delivery.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** @param number how many attempts of the delivery there are with this one */
export async function recordAttempt(
  database: Database,
  executor: QueryExecutor,
  deliveryId: string,
  number: number,
  { at, statusCode, error, durationMs, body }: WebhookAttempt,
): Promise<void> {
  await executor
    .insert(database.tables.webhookAttempts)
    .values({ deliveryId, number, at, statusCode, error, durationMs, body })
}
