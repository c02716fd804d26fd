import { pick } from '../shared/fields.ts'
import type { PublicConfig } from './without-secrets.ts'

/** Settings that a change of makes nodes answer the same call differently. Addresses and logs are each node's own. */
const sharedNames = [
  'publicUrl',
  'oidc',
  'signup',
  'requireTotp',
  'tokenMaxHours',
  'trustedProxies',
  'corsOrigins',
  'webhooks',
  'budgets',
  'guard',
  'retention',
  'plans',
  'delivery',
  'alerts',
  'templates',
] as const

/** Picks the settings that all nodes of a database should share. */
export const sharedSettings = (config: PublicConfig) => pick(config, sharedNames)
