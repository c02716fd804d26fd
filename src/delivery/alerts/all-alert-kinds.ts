import type { AlertDestinationKind } from './alert-kind.ts'
import { emailAlerts } from './email-alerts.ts'
import { discordAlerts, ntfyAlerts, slackAlerts, webhookAlerts } from './http-alerts.ts'

/** Every kind of destination, in the order of the documentation. */
export const alertDestinationKinds: readonly AlertDestinationKind[] = [
  emailAlerts,
  webhookAlerts,
  slackAlerts,
  discordAlerts,
  ntfyAlerts,
]
