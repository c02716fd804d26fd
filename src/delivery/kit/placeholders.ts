import { basicAuth, digitsOf } from './message-fields.ts'
import type { OutgoingMessage } from './provider.ts'
import { measureSms } from '../text/sms-segments.ts'

/** What stands for something in the templates of an operator: `{{text}}`, and what it becomes. */
const readers = {
  to: ({ to }) => to,
  digits: ({ to }) => digitsOf(to),
  text: ({ text }) => text,
  code: ({ code }) => code,
  requestId: ({ requestId }) => requestId,
  locale: ({ locale }) => locale,
  country: ({ country }) => country ?? '',
  channel: ({ channel }) => channel,
  applicationName: ({ applicationName }) => applicationName,
  validitySeconds: ({ validitySeconds }) => String(Math.floor(validitySeconds)),
  // Rather too short than beyond the code's own life; but no gateway takes nought.
  validityMinutes: ({ validitySeconds }) => String(Math.max(1, Math.floor(validitySeconds / 60))),
  callbackUrl: ({ callbackUrl }) => callbackUrl ?? '',
  attempt: ({ attempt }) => String(attempt),
  username: (_, { username }) => username,
  password: (_, { password }) => password,
  basic: (_, { username, password }) => basicAuth(username, password),
} as const satisfies Record<string, (message: OutgoingMessage, credentials: Credentials) => string>

export type Credentials = { username: string; password: string }

/** Those that never hold what a header could not. */
const inHeaders = [
  'requestId',
  'locale',
  'channel',
  'validitySeconds',
  'attempt',
  'username',
  'password',
  'basic',
]

const names = Object.keys(readers)

/** For help texts. */
export const placeholderHelp = `{{${names.join('}}, {{')}}} and {{gsm?one:other}} for texts that fit the GSM alphabet and others`

/** A text in which every `{{…}}` is known; behind `start`, a pattern. */
export const templatePattern = (start = ''): RegExp =>
  new RegExp(`^${start}(?:(?!\\{\\{)[^]|\\{\\{(?:${names.join('|')}|gsm\\?[^{}:]*:[^{}]*)\\}\\})*$`)

/** Lines of `Name: value`. */
export const headersPattern = new RegExp(
  `^(?:[\\w-]+:(?:(?!\\{\\{)[\\x20-\\x7e]|\\{\\{(?:${inHeaders.join('|')})\\}\\})*(?:\\n|$))+$`,
)

/** How a value must be written where it is put. */
export const escapes = {
  /** Within the quotes of a JSON text. */
  json: (value: string) => JSON.stringify(value).slice(1, -1),
  /** In a form, a query or a path; RFC 3986 §2.3 leaves nothing else as it is. */
  percent: (value: string) =>
    encodeURIComponent(value).replaceAll(
      /[!'()*]/g,
      (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
    ),
  /** In element content and in attributes. */
  xml: (value: string) => value.replaceAll(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`),
  /** As it is. */
  none: (value: string) => value,
} as const

/** Puts the message into a template that fits `templatePattern`. */
export function fillTemplate(
  template: string,
  message: OutgoingMessage,
  credentials: Credentials,
  escape: (value: string) => string,
): string {
  return template.replaceAll(/\{\{(?:gsm\?([^{}:]*):([^{}]*)|(\w+))\}\}/g, (whole, gsm, other, name) => {
    if (gsm !== undefined) return measureSms(message.text).encoding === 'GSM-7' ? String(gsm) : String(other)
    return isName(name) ? escape(readers[name](message, credentials)) : whole
  })
}

const isName = (name: unknown): name is keyof typeof readers =>
  typeof name === 'string' && Object.hasOwn(readers, name)
