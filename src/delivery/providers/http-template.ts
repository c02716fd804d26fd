import { channels as allChannels } from '../../domain/model/request.ts'
import { createFailure, outcomeFromResult, outcomeFromStatus } from '../kit/failures.ts'
import { urlOriginPattern, channelsField, readChannels } from './generic-http.ts'
import type { HttpResponse, HttpRequest } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import {
  escapers,
  fillTemplate,
  headersPattern,
  placeholderHelp,
  templatePattern,
} from '../kit/placeholders.ts'
import { accepted, refused, type FailureClass, type Provider, type SendOutcome } from '../kit/provider.ts'

const statusPattern = String.raw`[1-5](?:\d\d|xx)`
const path = String.raw`[\w$-]+(?:\.[\w$-]+)*`

/** What a line of `refusals` may conclude. */
const refusalClasses = [
  'invalid_number',
  'unreachable',
  'opted_out',
  'geo_blocked',
  'content_blocked',
  'sender_invalid',
  'auth_failed',
  'no_credit',
  'throttled',
  'provider_down',
] as const satisfies readonly FailureClass[]

const fields = {
  url: {
    description: `the address, its path and query with placeholders: ${placeholderHelp}`,
    required: true,
    pattern: templatePattern(String.raw`(?=${urlOriginPattern}(?:[/?][^\s#\\]*)?$)`),
    example: 'https://sms.example.com/send?to={{digits}}&text={{text}}',
  },
  method: { description: 'the method', default: 'POST', choices: ['GET', 'POST', 'PUT'] },
  headers: {
    description: 'lines of `Name: value`, in values {{basic}}, {{username}}, {{password}} and {{requestId}}',
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
    pattern: templatePattern(),
    example: '{"to": "{{to}}", "text": "{{text}}"}',
  },
  username: { description: 'what {{username}} stands for' },
  password: { description: 'what {{password}} stands for', secret: true },
  successStatus: {
    description: 'the statuses of a message that was taken, with commas',
    default: '2xx',
    pattern: new RegExp(`^${statusPattern}(\\s*,\\s*${statusPattern})*$`),
    example: '200, 202',
  },
  successText: { description: 'what the answer must then contain as well' },
  successValue: {
    description:
      'what the JSON of the answer must then hold as well: a path, = and values with | between them',
    pattern: new RegExp(`^${path}\\s*=\\s*\\S.*$`),
    example: 'messages.0.status = 0',
  },
  messageIdPath: {
    description: 'where the JSON of the answer has the id of the message',
    pattern: new RegExp(`^${path}$`),
    example: 'messages.0.id',
  },
  refusals: {
    description: `lines of text = class, for answers of a message that was not taken and contain the text; classes are ${refusalClasses.join(', ')}`,
    multiline: true,
    pattern: new RegExp(`^(?:[^\\n]*\\S[^\\n]*=[ \\t]*(?:${refusalClasses.join('|')})[ \\t]*(?:\\n|$))+$`),
    example: 'unknown subscriber = invalid_number',
  },
  channels: channelsField,
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
 * Any gateway with an HTTP interface, described by its operator: address, headers and body are templates, and rules
 * read the answer. Placeholders are escaped for the place where they stand. It takes no receipts.
 */
export const httpTemplate = defineKind({
  kind: 'http-template',
  title: 'HTTP, described by templates',
  channels: allChannels,
  fields,
  create: createHttpTemplate,
})

type Settings = SettingValues<typeof fields>

function createHttpTemplate(settings: Settings, { http }: ProviderNeeds): Provider {
  const { method, bodyType } = settings
  const credentials = { username: settings.username ?? '', password: settings.password ?? '' }
  const escapeBody = bodyEscapers[bodyType] ?? escapers.none
  const rules = readRules(settings)
  return {
    channels: readChannels(settings.channels),

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
      return outcomeFromResult(result, (response) => readResponse(response, rules))
    },
  }
}

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
