import { inboxProvider, type Delivery } from '../domain/delivery.ts'
import { renderMessage } from './templates.ts'

/**
 * Decides who carries a message. While no provider is configured everything stays in the inbox, so that the first
 * code can be verified within a minute of the installation.
 */
export const createDelivery = (): Delivery => ({ route: () => inboxProvider, render: renderMessage })
