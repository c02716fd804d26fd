import type { WebhookEndpoint } from '../../client/resources.ts'
import { eventsText } from '../../client/webhook-text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useResource } from '../hooks/use-resource.ts'
import { usePendingSelection } from '../hooks/use-pending-selection.ts'
import { endpointStatus } from '../lines/webhook.ts'
import type { TabProps } from './app-tab.ts'
import { createDialog } from './webhook-dialogs.ts'

const empty = [
  'No webhooks yet.',
  '',
  'Press n to send its events to a URL; or:',
  '',
  '  otpd webhook create --app APP --url URL --events otp.verified',
]

/** Tab with the application's webhook endpoints. */
export function AppWebhooks({ app, keys, width, height }: TabProps) {
  const console = useConsole()
  const { theme, openDialog, copy, go } = console
  const appId = app.id
  const webhooks = useResource('/v1/webhooks', { query: { appId, limit: '200' } })
  const list = useList<WebhookEndpoint>({
    name: `app ${appId} webhooks`,
    rows: webhooks.data ?? [],
    height: height - 1,
    getRowId: ({ id }) => id,
    getFilterText: (endpoint) => `${endpoint.url} ${eventsText(endpoint)} ${endpoint.description ?? ''}`,
  })
  const { selected } = list
  const selectWebhook = usePendingSelection('webhook of the app', list)
  const { data: applications = [] } = useApplications()
  const isNameTaken = applications.some(({ id, name }) => name === app.name && id !== app.id)
  useKeys('apps', {
    ...keys,
    open: selected && { run: () => go('webhooks', { webhookId: selected.id }), label: 'deliveries' },
    create: {
      run: () => openDialog(createDialog(console, isNameTaken ? app.id : app.name, selectWebhook)),
      label: 'new webhook',
    },
    copy: selected && { run: () => copy(selected.id, 'webhook id'), label: 'copy id' },
  })
  if (webhooks.data === undefined) return <LoadingOrError polled={webhooks} width={width} height={height} />
  const columns: Column<WebhookEndpoint>[] = [
    { title: 'URL', width: 24, grow: 3, cell: ({ url }) => url },
    { title: 'EVENTS', width: 14, grow: 1, dropPriority: 1, cell: eventsText },
    { title: 'STATUS', width: 12, cell: (endpoint) => endpointStatus(endpoint, theme) },
  ]
  return <ListTable list={list} columns={columns} width={width} empty={empty} />
}
