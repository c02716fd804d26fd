import { basicAuth, fitsGsmAlphabet, stripPlus } from './message-fields.ts'
import type { OutcomeReport, OutgoingMessage } from './provider.ts'

/** Value of each placeholder (`{{text}}`) in operators' templates. */
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
  // Rounded down so that it never exceeds the code's lifetime; at least 1, because gateways reject 0.
  validityMinutes: ({ validitySeconds }) => String(Math.max(1, Math.floor(validitySeconds / 60))),
  callbackUrl: ({ callbackUrl }) => callbackUrl ?? '',
  messageNumber: ({ messageNumber }) => String(messageNumber),
  attempt: ({ attempt }) => String(attempt),
  username: (_, { username }) => username,
  password: (_, { password }) => password,
  basic: (_, { username, password }) => basicAuth(username, password),
} as const satisfies Record<string, (message: OutgoingMessage, credentials: Credentials) => string>

export type Credentials = { username: string; password: string }

/** Value of each placeholder in an operator's template for reports of outcomes. */
const reportValues = {
  to: ({ to }) => to,
  digits: ({ to }) => stripPlus(to),
  requestId: ({ requestId }) => requestId,
  messageId: ({ messageId }) => messageId,
  channel: ({ channel }) => channel,
  outcome: ({ outcome }) => outcome,
  username: (_, { username }) => username,
  password: (_, { password }) => password,
  basic: (_, { username, password }) => basicAuth(username, password),
} as const satisfies Record<string, (report: OutcomeReport, credentials: Credentials) => string>

/** Placeholders whose values are always valid in a header. */
const headerSafe = [
  'requestId',
  'locale',
  'channel',
  'validitySeconds',
  'messageNumber',
  'attempt',
  'username',
  'password',
  'basic',
]

/** Names of the placeholders of messages. */
export const placeholderNames = Object.keys(placeholderValues)

/** Lists the placeholders, for help texts. */
export const placeholderHelp = `{{${placeholderNames.join('}}, {{')}}} and {{gsm?one:other}} for texts that fit the GSM alphabet and others`

/**
 * Matches a template in which every `{{…}}` is known.
 *
 * @param start pattern that the template must begin with
 */
export const templatePattern = (start = ''): RegExp =>
  new RegExp(
    `^${start}(?:(?!\\{\\{)[^]|\\{\\{(?:${placeholderNames.join('|')}|gsm\\?[^{}:]*:[^{}]*)\\}\\})*$`,
  )

/** Matches lines of `Name: value` with header-safe placeholders. */
export const headersPattern = new RegExp(
  `^(?:[\\w-]+:(?:(?!\\{\\{)[\\x20-\\x7e]|\\{\\{(?:${headerSafe.join('|')})\\}\\})*(?:\\n|$))+$`,
)

/** Escapes a value for its place in a request. */
export const escapers = {
  /** Inside a JSON string. */
  json: (value: string) => JSON.stringify(value).slice(1, -1),
  /** In a form, query or path: percent-encodes all but the unreserved characters (RFC 3986 §2.3). */
  percent: (value: string) =>
    encodeURIComponent(value).replaceAll(
      /[!'()*]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    ),
  /** In element content and in attributes. */
  xml: (value: string) => value.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`),
  /** Unchanged. */
  none: (value: string) => value,
} as const

/** Fills the placeholders of a template that matches `templatePattern`. */
export function fillTemplate(
  template: string,
  message: OutgoingMessage,
  credentials: Credentials,
  escape: (value: string) => string,
): string {
  return template.replaceAll(
    /\{\{(?:gsm\?([^{}:]*):([^{}]*)|(\w+))\}\}/g,
    (placeholder, gsm, other, name) => {
      if (gsm !== undefined) return fitsGsmAlphabet(message.text) ? String(gsm) : String(other)
      return isPlaceholderName(name) ? escape(placeholderValues[name](message, credentials)) : placeholder
    },
  )
}

/** Names of the placeholders of reports. */
export const reportPlaceholderNames = Object.keys(reportValues)

/** Lists the placeholders of reports, for help texts. */
export const reportPlaceholderHelp = `{{${reportPlaceholderNames.join('}}, {{')}}}`

/** Matches a template for reports in which every `{{…}}` is known. */
export const reportTemplatePattern = (start = ''): RegExp =>
  new RegExp(`^${start}(?:(?!\\{\\{)[^]|\\{\\{(?:${reportPlaceholderNames.join('|')})\\}\\})*$`)

/** Fills the placeholders of a template that matches `reportTemplatePattern`. */
export const fillReportTemplate = (
  template: string,
  report: OutcomeReport,
  credentials: Credentials,
  escape: (value: string) => string,
): string =>
  template.replaceAll(/\{\{(\w+)\}\}/g, (placeholder, name: string) =>
    isReportPlaceholder(name) ? escape(reportValues[name](report, credentials)) : placeholder,
  )

const isReportPlaceholder = (name: string): name is keyof typeof reportValues =>
  Object.hasOwn(reportValues, name)

const isPlaceholderName = (name: unknown): name is keyof typeof placeholderValues =>
  typeof name === 'string' && Object.hasOwn(placeholderValues, name)
