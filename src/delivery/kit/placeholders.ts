import { basicAuth, stripPlus } from './message-fields.ts'
import type { OutgoingMessage } from './provider.ts'
import { measureSms } from '../text/sms-segments.ts'

/** What stands for something in the templates of an operator: `{{text}}`, and what it becomes. */
const placeholderValues = {
  to: ({ to }) => to,
  digits: ({ to }) => stripPlus(to),
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
const headerSafe = [
  'requestId',
  'locale',
  'channel',
  'validitySeconds',
  'attempt',
  'username',
  'password',
  'basic',
]

const placeholderNames = Object.keys(placeholderValues)

/** For help texts. */
export const placeholderHelp = `{{${placeholderNames.join('}}, {{')}}} and {{gsm?one:other}} for texts that fit the GSM alphabet and others`

/** A text in which every `{{…}}` is known; behind `start`, a pattern. */
export const templatePattern = (start = ''): RegExp =>
  new RegExp(
    `^${start}(?:(?!\\{\\{)[^]|\\{\\{(?:${placeholderNames.join('|')}|gsm\\?[^{}:]*:[^{}]*)\\}\\})*$`,
  )

/** Lines of `Name: value`. */
export const headersPattern = new RegExp(
  `^(?:[\\w-]+:(?:(?!\\{\\{)[\\x20-\\x7e]|\\{\\{(?:${headerSafe.join('|')})\\}\\})*(?:\\n|$))+$`,
)

/** How a value must be written where it is put. */
export const escapers = {
  /** Within the quotes of a JSON text. */
  json: (value: string) => JSON.stringify(value).slice(1, -1),
  /** In a form, a query or a path; RFC 3986 §2.3 leaves nothing else as it is. */
  percent: (value: string) =>
    encodeURIComponent(value).replaceAll(
      /[!'()*]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    ),
  /** In element content and in attributes. */
  xml: (value: string) => value.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`),
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
  return template.replaceAll(
    /\{\{(?:gsm\?([^{}:]*):([^{}]*)|(\w+))\}\}/g,
    (placeholder, gsm, other, name) => {
      if (gsm !== undefined)
        return measureSms(message.text).encoding === 'GSM-7' ? String(gsm) : String(other)
      return isPlaceholderName(name) ? escape(placeholderValues[name](message, credentials)) : placeholder
    },
  )
}

const isPlaceholderName = (name: unknown): name is keyof typeof placeholderValues =>
  typeof name === 'string' && Object.hasOwn(placeholderValues, name)
