import type { Attempt } from '../domain/webhooks/delivery.ts'
import type { Builders, Database } from './engine/database.ts'

/** @param number how many attempts of the delivery there are with this one */
export async function recordAttempt(
  database: Database,
  on: Builders,
  deliveryId: string,
  number: number,
  { at, statusCode, error, durationMs, body }: Attempt,
): Promise<void> {
  await on
    .insert(database.tables.webhookAttempts)
    .values({ deliveryId, number, at, statusCode, error, durationMs, body })
}
