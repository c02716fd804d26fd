import type { FieldDefinitions } from './fields.ts'

/**
 * Settings of an application, in the order of responses. Types, defaults, queries, request and response schemas, options
 * of `otpd app update`, output of `otpd app get` and forms of the console derive from this table.
 */
export const applicationFields = {
  otpTtlSeconds: {
    kind: 'seconds',
    minimum: 60,
    maximum: 600,
    default: 300,
    errorText: 'Expected a whole number from 60 to 600',
    isMessageSetting: false,
    terminal: {
      option: '--otp-ttl <seconds>',
      help: 'code lifetime, 60 to 600 seconds',
      label: 'Code lifetime',
      consoleLabel: 'code lifetime',
    },
  },
  /** BCP 47 tag, used if the request names no locale or one without a template. */
  defaultLocale: {
    kind: 'text',
    // `language-Script-REGION` and shorter, in upper or lower case.
    pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$',
    format: 'language-tag',
    default: null,
    errorText: 'Expected the tag of a language, such as en or pt-BR',
    description: 'Language of messages, unless the request names one.',
    isMessageSetting: true,
    terminal: {
      option: '--locale <tag>',
      help: 'language of messages, like en or pt-BR',
      label: 'Language',
      consoleLabel: 'language',
    },
  },
  /** Host whose pages may autofill the code (WICG, Origin-bound one-time codes delivered via SMS). */
  webOtpDomain: {
    kind: 'text',
    // A host name of two labels or more, in ASCII (RFC 1123 §2.1, RFC 5890 for others): no scheme, port, address or
    // wildcard. The last label begins with a letter, which excludes IP addresses.
    pattern:
      '^(?=.{4,253}$)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])$',
    default: null,
    errorText: 'Expected a host name such as example.com, without scheme, port or path',
    description:
      'Host whose pages may autofill the code (WebOTP). Messages then end with the origin-bound line that browsers look for.',
    isMessageSetting: true,
    terminal: {
      option: '--webotp-domain <host>',
      help: 'domain whose pages may autofill the code, like example.com',
      label: 'WebOTP',
      consoleLabel: 'WebOTP host',
    },
  },
  /** Hash of the Android app that may read the message (Google, SMS Retriever API). */
  androidAppHash: {
    kind: 'text',
    // The first 11 characters of a SHA-256 in base64.
    pattern: '^[A-Za-z0-9+/]{11}$',
    default: null,
    errorText: 'Expected the 11-character hash of an Android app',
    description: 'App hash of the Android app that may read the message (SMS Retriever API).',
    isMessageSetting: true,
    terminal: {
      option: '--android-hash <hash>',
      help: 'hash of the Android app that may read the message',
      label: 'Android app',
      consoleLabel: 'Android hash',
    },
  },
  defaultCountry: {
    kind: 'text',
    pattern: '^[A-Za-z]{2}$',
    format: 'country',
    default: null,
    errorText: 'Expected the two-letter code of a country, such as GB',
    description:
      'Country of phone numbers that are written without their country code, unless a call names one: ISO 3166-1 alpha-2.',
    isMessageSetting: false,
    terminal: {
      option: '--default-country <code>',
      help: 'country of numbers without country code, like GB',
      label: 'Local numbers',
      consoleLabel: 'local numbers',
    },
  },
  countries: {
    kind: 'countries',
    default: null,
    errorText: 'Expected the two-letter codes of countries, such as DE and AT',
    description:
      'The only countries that get messages of this application, within those that the operator allows: ISO 3166-1 alpha-2, and `001` for numbers of no country. Null: all.',
    isMessageSetting: false,
    terminal: {
      option: '--countries <codes>',
      help: 'the only countries that get messages, like DE,AT',
      label: 'Countries',
      consoleLabel: 'countries',
    },
  },
} as const satisfies FieldDefinitions
