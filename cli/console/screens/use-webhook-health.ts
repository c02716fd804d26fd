import type { WebhookEndpoint } from '../../client/resources.ts'
import { relativeTime } from '../../terminal/text.ts'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useNow } from '../hooks/use-now.ts'
import { useResource } from '../hooks/use-resource.ts'
import type { Line } from '../spans.ts'

/**
 * Polls the webhook endpoints, those that need attention first: failing ones by how long they fail, then disabled ones.
 * Also returns a line about the one that has been failing longest, and an action that opens it.
 */
export function useWebhookHealth() {
  const { go, theme } = useConsole()
  const { applicationName } = useApplications()
  const nowMs = useNow()
  const { data } = useResource('/v1/webhooks', { query: { limit: '200' } }, { intervalMs: 10_000 })
  const endpoints = data?.toSorted((a, b) => rankOf(a).localeCompare(rankOf(b)))
  const failing = (endpoints ?? []).filter(({ failingSince }) => failingSince !== null)
  const [endpoint] = failing
  if (endpoint === undefined) return { endpoints, failingLine: null, openFailing: undefined }
  const moreText = failing.length === 1 ? '' : `, and ${failing.length - 1} more`
  const failingLine: Line = [
    ' ',
    theme.status('warning', `webhook of ${applicationName(endpoint.appId)} is failing`),
    `, first failure ${relativeTime(endpoint.failingSince ?? '', nowMs)}${moreText}: ${endpoint.url}`,
  ]
  return { endpoints, failingLine, openFailing: () => go('webhooks', { webhookId: endpoint.id }) }
}

const rankOf = ({ failingSince, status }: WebhookEndpoint) =>
  failingSince !== null ? `1 ${failingSince}` : status === 'disabled' ? '2' : '3'
