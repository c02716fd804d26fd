import { channels as allChannels } from '../../domain/model/request.ts'
import { failureOf, readReply, readStatus } from '../kit/failures.ts'
import { addressStart, channelsField, readChannels } from './generic-http.ts'
import type { HttpAnswer, HttpRequest } from '../kit/http-client.ts'
import { parseJson, textAt, valueAt } from '../kit/json.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/kinds.ts'
import {
  escapes,
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
    pattern: templatePattern(String.raw`(?=${addressStart}(?:[/?][^\s#\\]*)?$)`),
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

const bodyEscapes: Readonly<Record<string, (value: string) => string>> = {
  json: escapes.json,
  form: escapes.percent,
  xml: escapes.xml,
  text: escapes.none,
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
  const escapeBody = bodyEscapes[bodyType] ?? escapes.none
  const rules = readRules(settings)
  return {
    channels: readChannels(settings.channels),

    async send(message, signal) {
      const fill = (template: string, escape: (value: string) => string) =>
        fillTemplate(template, message, credentials, escape)
      const hasBody = settings.body !== undefined && method !== 'GET'
      const request: HttpRequest = {
        method: readMethod(method),
        url: fill(settings.url, escapes.percent),
        headers: {
          ...(hasBody && { 'content-type': contentTypes[bodyType] ?? '' }),
          ...readHeaders(fill(settings.headers ?? '', escapes.none)),
        },
        ...(hasBody && { body: fill(settings.body ?? '', escapeBody) }),
      }
      const reply = await http.request(request, signal)
      return readReply(reply, (answer) => readAnswer(answer, rules))
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
    isSuccess: (status: number) => statuses.some((start) => String(status).startsWith(start)),
    text: settings.successText,
    value: settings.successValue === undefined ? undefined : readValueRule(settings.successValue),
    idPath: settings.messageIdPath?.split('.'),
    refusals: (settings.refusals ?? '').split('\n').flatMap((line) => {
      const at = line.lastIndexOf('=')
      const found = refusalClasses.find((one) => one === line.slice(at + 1).trim())
      return found ? [{ text: line.slice(0, at).trim(), class: found }] : []
    }),
  }
}

const splitTrimmed = (text: string, by: string) => text.split(by).map((part) => part.trim())

function readValueRule(rule: string) {
  const at = rule.indexOf('=')
  return { path: rule.slice(0, at).trim().split('.'), values: splitTrimmed(rule.slice(at + 1), '|') }
}

function readAnswer(answer: HttpAnswer, rules: Rules): SendOutcome {
  const body = parseJson(answer.text)
  if (rules.isSuccess(answer.status) && holds(answer, body, rules)) {
    return accepted((rules.idPath && textAt(body, ...rules.idPath)) ?? null)
  }
  const refusal = rules.refusals.find(({ text }) => answer.text.includes(text))
  if (refusal) return refused(failureOf(refusal.class, `HTTP ${answer.status}`))
  return readStatus(answer)
}

function holds(answer: HttpAnswer, body: unknown, { text, value }: Rules): boolean {
  if (text !== undefined && !answer.text.includes(text)) return false
  if (value === undefined) return true
  const found = valueAt(body, ...value.path)
  return typeof found !== 'object' && value.values.includes(String(found))
}
