import { eventKinds } from '../../../src/shared/event-kinds.ts'
import { readEvents } from '../../webhooks/read-events.ts'
import { findApplication } from '../../client/find.ts'
import type { WebhookDelivery, WebhookEndpoint } from '../../client/resources.ts'
import { faultForStatus, faultText } from '../../client/webhook-text.ts'
import { required, type Dialog, type Field, type DialogNeeds } from '../console-context.ts'

function checkEvents(value: string) {
  const kinds: readonly string[] = [...eventKinds, '*']
  const requested = value.split(',').map((item) => item.trim())
  const unknown = requested.find((item) => !kinds.includes(item))
  return unknown === undefined ? null : unknown === '' ? 'required' : `unknown event type: ${unknown}`
}

const endpointFields = (url: string, events: string, description: string): Field[] => [
  { name: 'url', label: 'url', initial: url, check: required },
  { name: 'events', label: 'events', initial: events, check: checkEvents },
  { name: 'description', label: 'description', initial: description },
]

const eventsLine = 'Event types, separated by commas, for example otp.verified,otp.failed; or * for all.'

/**
 * Creates a webhook endpoint.
 *
 * @param appName default application
 * @param onCreated called with the id of the new webhook
 */
export const createDialog = (
  { api, toast }: DialogNeeds,
  appName: string,
  onCreated: (id: string) => void,
): Dialog => ({
  kind: 'form',
  title: 'New webhook',
  lines: [eventsLine],
  fields: [
    { name: 'app', label: 'application', initial: appName, check: required },
    ...endpointFields('https://', 'otp.verified', ''),
  ],
  verb: 'create',
  async submit({ app = '', url = '', events = '', description = '' }) {
    const appId = await findApplication(api, app)
    const body = { appId, url, events: readEvents(events), ...(description && { description }) }
    const { data } = await api.asDeveloper('POST', '/v1/webhooks', { body })
    toast('webhook created; T sends a test event', 'good')
    onCreated(data.id)
  },
})

/** Edits URL, events and description of an endpoint. */
export const editDialog = ({ api, toast }: DialogNeeds, endpoint: WebhookEndpoint): Dialog => ({
  kind: 'form',
  title: 'Edit webhook',
  lines: [
    eventsLine,
    ...(Object.keys(endpoint.headers).length > 0
      ? ['A URL with another origin removes the headers of this webhook.']
      : []),
  ],
  fields: endpointFields(endpoint.url, endpoint.events.join(','), endpoint.description ?? ''),
  verb: 'save',
  async submit({ url = '', events = '', description = '' }) {
    const body = { url, events: readEvents(events), description: description || null }
    const { data } = await api.asDeveloper('PATCH', '/v1/webhooks/:id', { params: { id: endpoint.id }, body })
    const dropped = data.droppedHeaders?.join(', ')
    if (dropped === undefined) toast('webhook saved', 'good')
    else toast(`webhook saved; its URL has another origin, so these headers were removed: ${dropped}`, 'bad')
  },
})

/** Sends a test event to an endpoint. */
export const testDialog = ({ api, toast }: DialogNeeds, { id, url }: WebhookEndpoint): Dialog => ({
  kind: 'form',
  title: 'Test webhook',
  lines: ['Sends a signed otp.verified test event now to:', url],
  fields: [],
  verb: 'send',
  async submit() {
    const { data } = await api.asDeveloper('POST', '/v1/webhooks/:id/test', { params: { id } })
    const { delivered, statusCode, error } = data
    if (delivered) return toast(`${statusCode} delivered`, 'good')
    const statusText = statusCode === 0 ? 'no response' : String(statusCode)
    toast(`${statusText}, not delivered. ${faultText(error ?? faultForStatus(statusCode))}`, 'bad')
  },
})

/** Disables an endpoint, or enables it again. */
export const toggleDialog = ({ api, toast }: DialogNeeds, { id, url, status }: WebhookEndpoint): Dialog => {
  const isEnabled = status === 'enabled'
  return {
    kind: 'form',
    title: isEnabled ? 'Disable webhook' : 'Enable webhook',
    lines: [
      isEnabled
        ? 'No events are sent to this URL until it is enabled again:'
        : 'Events are sent to this URL again:',
      url,
    ],
    fields: [],
    verb: isEnabled ? 'disable' : 'enable',
    async submit() {
      const body = { status: isEnabled ? ('disabled' as const) : ('enabled' as const) }
      await api.asDeveloper('PATCH', '/v1/webhooks/:id', { params: { id }, body })
      toast(`webhook ${body.status}`, 'good')
    },
  }
}

/** Deletes an endpoint, after its host is typed. */
export const removeDialog = ({ api, toast }: DialogNeeds, { id, url }: WebhookEndpoint): Dialog => ({
  kind: 'confirm',
  title: 'Delete webhook',
  lines: [url, 'Its pending deliveries are deleted with it.'],
  // A webhook has no name, and its id is too long to type.
  confirmText: new URL(url).host,
  verb: 'delete',
  async submit() {
    await api.asDeveloper('DELETE', '/v1/webhooks/:id', { params: { id } })
    toast('webhook deleted', 'good')
  },
})

/** Sends the event of a delivery again. */
export const redeliverDialog = (
  { api, toast }: DialogNeeds,
  webhookId: string,
  { id, type }: Pick<WebhookDelivery, 'id' | 'type'>,
): Dialog => ({
  kind: 'form',
  title: 'Redeliver event',
  lines: [`Sends ${type} again now, with the same webhook-id.`],
  fields: [],
  verb: 'redeliver',
  async submit() {
    const path = '/v1/webhooks/:id/deliveries/:deliveryId/redeliver'
    await api.asDeveloper('POST', path, { params: { id: webhookId, deliveryId: id } })
    toast(`redelivery of ${type} attempted`, 'good')
  },
})
