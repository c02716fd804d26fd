/** Tables with sealed columns, in the order in which they are sealed again. The names are stored. */
export const sealedTables = [
  'applications',
  'webhook_endpoints',
  'idempotency_keys',
  'webhook_attempts',
  'phones',
  'otp_requests',
  'events',
  'relayed_messages',
  'guard_rules',
  'otp_sessions',
] as const

export type SealedTable = (typeof sealedTables)[number]
