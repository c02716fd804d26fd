import { channels as allChannels } from '../../domain/model/request.ts'
import { createFailure, outcomeFromResult, outcomeFromStatus } from '../kit/failures.ts'
import { urlOriginPattern } from './generic-http.ts'
import { channelsField } from '../kit/channels.ts'
import type { HttpResponse, HttpRequest } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import { basicAuth } from '../kit/message-fields.ts'
import { readReportResult } from '../kit/outcome-reports.ts'
import { readReply } from '../kit/reply-text.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import {
  type Credentials,
  escapers,
  fillTemplate,
  headersPattern,
  fillReportTemplate,
  placeholderHelp,
  placeholderNames,
  reportPlaceholderHelp,
  reportPlaceholderNames,
  reportTemplatePattern,
  templatePattern,
} from '../kit/placeholders.ts'
import { accepted, refused, type FailureClass, type Provider, type SendOutcome } from '../kit/provider.ts'

const statusPattern = String.raw`[1-5](?:\d\d|xx)`
const path = String.raw`[\w$-]+(?:\.[\w$-]+)*`

/** Failure classes that a line of `refusals` may name. */
const refusalClasses = [
  'invalid_number',
  'unreachable',
  'opted_out',
  'geo_blocked',
  'content_blocked',
  'blocked_by_carrier',
  'sender_invalid',
  'auth_failed',
  'no_credit',
  'throttled',
  'provider_down',
] as const satisfies readonly FailureClass[]

const fields = {
  url: {
    description: `the URL, with placeholders in its path and query: ${placeholderHelp}`,
    required: true,
    placeholders: placeholderNames,
    pattern: templatePattern(String.raw`(?=${urlOriginPattern}(?:[/?][^\s#\\]*)?$)`),
    example: 'https://sms.example.com/send?to={{digits}}&text={{text}}',
  },
  method: { description: 'the HTTP method', default: 'POST', choices: ['GET', 'POST', 'PUT'] },
  headers: {
    description:
      'lines of `Name: value`; values may use {{basic}}, {{username}}, {{password}} and {{requestId}}',
    multiline: true,
    secret: true,
    pattern: headersPattern,
    example: 'Authorization: {{basic}}',
  },
  bodyType: {
    description: 'how placeholders are escaped in the body, and its content type',
    default: 'json',
    choices: ['json', 'form', 'xml', 'text'],
  },
  body: {
    description: `the body, with placeholders: ${placeholderHelp}`,
    multiline: true,
    placeholders: placeholderNames,
    pattern: templatePattern(),
    example: '{"to": "{{to}}", "text": "{{text}}"}',
  },
  username: { description: 'the value of {{username}}' },
  password: { description: 'the value of {{password}}', secret: true },
  successStatus: {
    description: 'the statuses that mean the message was accepted, separated by commas',
    default: '2xx',
    pattern: new RegExp(`^${statusPattern}(\\s*,\\s*${statusPattern})*$`),
    example: '200, 202',
  },
  successText: { description: 'text that the response must then also contain' },
  successValue: {
    description:
      'a JSON value that the response must then also have: a path, =, and the allowed values separated by |',
    pattern: new RegExp(`^${path}\\s*=\\s*\\S.*$`),
    example: 'messages.0.status = 0',
  },
  messageIdPath: {
    description: 'the path of the message id in the JSON response',
    pattern: new RegExp(`^${path}$`),
    example: 'messages.0.id',
  },
  refusals: {
    description: `lines of text = class: a response that is no success and contains the text is a failure of this class, one of ${refusalClasses.join(', ')}`,
    multiline: true,
    pattern: new RegExp(`^(?:[^\\n]*\\S[^\\n]*=[ \\t]*(?:${refusalClasses.join('|')})[ \\t]*(?:\\n|$))+$`),
    example: 'unknown subscriber = invalid_number',
  },
  reportUrl: {
    description: `the URL to report outcomes to, by POST with the same headers, with placeholders: ${reportPlaceholderHelp}`,
    placeholders: reportPlaceholderNames,
    pattern: reportTemplatePattern(String.raw`(?=${urlOriginPattern}(?:[/?][^\s#\\]*)?$)`),
    example: 'https://sms.example.com/messages/{{messageId}}/outcome',
  },
  reportBody: {
    description: `the body of a report, of the same type as that of a message, with placeholders: ${reportPlaceholderHelp}`,
    multiline: true,
    placeholders: reportPlaceholderNames,
    pattern: reportTemplatePattern(),
    example: '{"id": "{{messageId}}", "outcome": "{{outcome}}"}',
  },
  channels: channelsField(),
} as const

const contentTypes: Readonly<Record<string, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  xml: 'text/xml; charset=utf-8',
  text: 'text/plain; charset=utf-8',
}

const bodyEscapers: Readonly<Record<string, (value: string) => string>> = {
  json: escapers.json,
  form: escapers.percent,
  xml: escapers.xml,
  text: escapers.none,
}

/**
 * Any gateway with an HTTP API, described by the operator: URL, headers and body are templates, and rules
 * read the response. Placeholders are escaped for their place. There are no delivery receipts; outcomes are reported with
 * `reportUrl`, for messages whose id `messageIdPath` finds.
 */
export const httpTemplate = defineKind({
  kind: 'http-template',
  title: 'HTTP, described by templates',
  channels: allChannels,
  fields,
  // Single braces are an easy mistake, and a gateway may accept a message without its code.
  findFault: ({ url = '', body, method = 'POST' }) =>
    /\{\{(?:text|code)\}\}/.test(messageTemplate({ url, body, method }))
      ? undefined
      : {
          name: method === 'GET' ? 'url' : 'body',
          fault: 'has neither {{text}} nor {{code}}',
          remedy: 'Put one of them where the gateway expects the message.',
        },
  create: createHttpTemplate,
})

type Settings = SettingValues<typeof fields>

/** All of a request that can have the text or the code: a GET has no body, and headers must not have them. */
const messageTemplate = ({ url, body = '', method }: Pick<Settings, 'url' | 'body' | 'method'>) =>
  method === 'GET' ? url : `${url} ${body}`

function createHttpTemplate(settings: Settings, { http }: ProviderNeeds): Provider {
  const { method, bodyType } = settings
  const credentials = { username: settings.username ?? '', password: settings.password ?? '' }
  const escapeBody = bodyEscapers[bodyType] ?? escapers.none
  const rules = readRules(settings)
  const secrets = listSecrets(settings, credentials)
  const { reportUrl, reportBody } = settings
  return {
    leavesOutText: !messageTemplate(settings).includes('{{text}}'),

    ...(reportUrl !== undefined && {
      async reportOutcome(report, signal) {
        const fill = (template: string, escape: (value: string) => string) =>
          fillReportTemplate(template, report, credentials, escape)
        const headers = readHeaders(fill(settings.headers ?? '', escapers.none))
        const type = reportBody === undefined ? {} : { 'content-type': contentTypes[bodyType] ?? '' }
        const request: HttpRequest = {
          method: 'POST',
          url: fill(reportUrl, escapers.percent),
          headers: { ...type, ...headers },
          ...(reportBody !== undefined && { body: fill(reportBody, escapeBody) }),
        }
        return readReportResult(await http.request(request, signal))
      },
    }),

    async send(message, signal) {
      const fill = (template: string, escape: (value: string) => string) =>
        fillTemplate(template, message, credentials, escape)
      const hasBody = settings.body !== undefined && method !== 'GET'
      const request: HttpRequest = {
        method: readMethod(method),
        url: fill(settings.url, escapers.percent),
        headers: {
          ...(hasBody && { 'content-type': contentTypes[bodyType] ?? '' }),
          ...readHeaders(fill(settings.headers ?? '', escapers.none)),
        },
        ...(hasBody && { body: fill(settings.body ?? '', escapeBody) }),
      }
      const result = await http.request(request, signal)
      const outcome = outcomeFromResult(result, (response) => readResponse(response, rules))
      if (outcome.kind === 'accepted' || result.kind !== 'response') return outcome
      const reply = readReply(result.text, message, secrets)
      return { ...outcome, failure: { ...outcome.failure, reply } }
    },
  }
}

/** Lists what a reply must not repeat: the credentials, and words of the templates that are as long as a key. */
function listSecrets(
  { url, headers = '', body = '' }: Settings,
  { username, password }: Credentials,
): string[] {
  const words = [headers, url.slice(url.indexOf('?') + 1), body].flatMap((template) =>
    template.replaceAll(/\{\{[^}]*\}\}/g, ' ').split(/[^\w.~+/-]+/),
  )
  const keys = words.filter((word) => word.length >= keyLengthMin)
  return [username, password, basicAuth(username, password), ...keys]
}

const keyLengthMin = 12

const readMethod = (method: string): HttpRequest['method'] =>
  method === 'GET' || method === 'PUT' ? method : 'POST'

const readHeaders = (lines: string): Record<string, string> =>
  Object.fromEntries(
    lines
      .split('\n')
      .map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ])
      .filter(([name]) => name !== ''),
  )

type Rules = ReturnType<typeof readRules>

function readRules(settings: Settings) {
  const statuses = splitTrimmed(settings.successStatus, ',').map((status) => status.replaceAll('x', ''))
  return {
    isSuccess: (status: number) => statuses.some((prefix) => String(status).startsWith(prefix)),
    text: settings.successText,
    value: settings.successValue === undefined ? undefined : readValueRule(settings.successValue),
    idPath: settings.messageIdPath?.split('.'),
    refusals: (settings.refusals ?? '').split('\n').flatMap((line) => {
      const separatorIndex = line.lastIndexOf('=')
      const failureClass = refusalClasses.find(
        (candidate) => candidate === line.slice(separatorIndex + 1).trim(),
      )
      return failureClass ? [{ text: line.slice(0, separatorIndex).trim(), class: failureClass }] : []
    }),
  }
}

const splitTrimmed = (text: string, separator: string) => text.split(separator).map((part) => part.trim())

function readValueRule(rule: string) {
  const separatorIndex = rule.indexOf('=')
  return {
    path: rule.slice(0, separatorIndex).trim().split('.'),
    values: splitTrimmed(rule.slice(separatorIndex + 1), '|'),
  }
}

function readResponse(response: HttpResponse, rules: Rules): SendOutcome {
  const body = parseJson(response.text)
  if (rules.isSuccess(response.status) && matchesSuccessRules(response, body, rules)) {
    return accepted((rules.idPath && textAt(body, ...rules.idPath)) ?? null)
  }
  const refusal = rules.refusals.find(({ text }) => response.text.includes(text))
  if (refusal) return refused(createFailure(refusal.class, `HTTP ${response.status}`))
  return outcomeFromStatus(response)
}

function matchesSuccessRules(response: HttpResponse, body: unknown, { text, value }: Rules): boolean {
  if (text !== undefined && !response.text.includes(text)) return false
  if (value === undefined) return true
  const actual = valueAt(body, ...value.path)
  return typeof actual !== 'object' && value.values.includes(String(actual))
}
