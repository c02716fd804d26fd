import type { AlertEvent, AlertNotice } from '../../domain/model/alert.ts'
import { isSuccess, type HttpRequest, type HttpResult } from '../kit/http-client.ts'
import { codeText } from '../../shared/error-cause.ts'
import { defineAlertKind, type AlertNeeds, type SendAlert } from './alert-kind.ts'
import { alertLines, alertTitle } from './alert-text.ts'

const tokenField = {
  description: 'the token that is sent as Authorization: Bearer',
  secret: true,
  pattern: /^[\x21-\x7e]+$/,
} as const

/** Posts each notice as JSON to an own receiver. */
export const webhookAlerts = defineAlertKind({
  kind: 'webhook',
  title: 'Webhook',
  fields: {
    url: { description: 'the URL to post to', required: true, url: 'whole' },
    token: tokenField,
  },
  create: ({ url, token }, needs) =>
    postEach(needs, (notice) => {
      const { destination, event, at, kind, subject, severity, message, remedy, since } = notice
      return {
        url,
        headers: {
          // The same at each attempt, so that a receiver can drop a repetition.
          'webhook-id': `${destination}.${kind}.${subject}.${at}`.replaceAll(/[^\w.+-]/g, '-'),
          ...authorization(token),
        },
        json: {
          type: `alert.${event}`,
          timestamp: new Date(at).toISOString(),
          data: {
            kind,
            subject,
            severity,
            message,
            remedy,
            since: new Date(since).toISOString(),
            server: needs.server(),
          },
        },
      }
    }),
})

/** Posts to an incoming webhook of Slack (api.slack.com/messaging/webhooks); Mattermost understands the same. */
export const slackAlerts = defineAlertKind({
  kind: 'slack',
  title: 'Slack',
  fields: {
    url: {
      description: 'the URL of the incoming webhook (api.slack.com/apps, Incoming Webhooks)',
      required: true,
      secret: true,
      url: 'whole',
    },
  },
  create: ({ url }, needs) =>
    postEach(needs, (notice) => {
      const title = `*${escapeSlack(alertTitle(notice))}*`
      const lines = alertLines(notice, needs.server()).map(escapeSlack)
      return { url, json: { text: [title, ...lines].join('\n') } }
    }),
})

/** Posts to a webhook of Discord (discord.com/developers/docs/resources/webhook#execute-webhook). */
export const discordAlerts = defineAlertKind({
  kind: 'discord',
  title: 'Discord',
  fields: {
    url: {
      description: 'the URL of the webhook (settings of the channel, Integrations)',
      required: true,
      secret: true,
      url: 'whole',
    },
  },
  create: ({ url }, needs) =>
    postEach(needs, (notice) => {
      const text = [alertTitle(notice), ...alertLines(notice, needs.server())].join('\n')
      // No text may call members of the server.
      return { url, json: { content: text.slice(0, discordLengthMax), allowed_mentions: { parse: [] } } }
    }),
})

const discordLengthMax = 2_000

/** Publishes to a topic of ntfy (docs.ntfy.sh/publish). */
export const ntfyAlerts = defineAlertKind({
  kind: 'ntfy',
  title: 'ntfy',
  fields: {
    url: {
      description: 'the URL of the topic',
      required: true,
      url: 'base',
      example: 'https://ntfy.sh/TOPIC',
    },
    token: { ...tokenField, description: 'the access token of a protected topic' },
  },
  create: ({ url, token }, needs) =>
    postEach(needs, (notice) => ({
      url,
      headers: {
        title: 'otpd',
        priority: notice.severity === 'critical' && notice.event !== 'resolved' ? 'urgent' : 'default',
        tags: ntfyTags[notice.event],
        'content-type': 'text/plain; charset=utf-8',
        ...authorization(token),
      },
      body: [alertTitle(notice), ...alertLines(notice, needs.server())].join('\n'),
    })),
})

const ntfyTags = {
  firing: 'warning',
  reminder: 'warning',
  resolved: 'white_check_mark',
  test: 'test_tube',
} as const satisfies Record<AlertEvent, string>

const authorization = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

/** Slack reads `<…>` as a link and `&` as an entity (api.slack.com/reference/surfaces/formatting#escaping). */
const escapeSlack = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Posts a request for each notice; any answer but 2xx is a failure. */
const postEach =
  ({ http }: AlertNeeds, toRequest: (notice: AlertNotice) => Omit<HttpRequest, 'method'>): SendAlert =>
  async (notice, signal) => {
    const request = toRequest(notice)
    return failureOf(await http.request({ method: 'POST', ...request }, signal), request.url)
  }

/**
 * Names the cause in plain words, with the host only: the path of the URL may be a secret, and the answer may repeat it.
 */
function failureOf(result: HttpResult, url: string): string | null {
  if (result.kind !== 'response') {
    const { host, port, protocol } = new URL(url)
    const address = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host
    return `${codeText(result.code) ?? result.code}: ${address}`
  }
  return isSuccess(result) ? null : `HTTP ${result.status}`
}
