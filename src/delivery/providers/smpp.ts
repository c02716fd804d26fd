import { createFailure, findFailure, type CodeTable } from '../kit/failures.ts'
import { defineKind, type SettingValues } from '../kit/provider-kinds.ts'
import { clamp, stripPlus } from '../kit/message-fields.ts'
import { accepted, refused, uncertain } from '../kit/provider.ts'
import type { Failure, OutgoingMessage, Provider, Receipt, SendOutcome } from '../kit/provider.ts'
import { createSmppLink } from './smpp-link.ts'
import { idFormats, isMarkedReceipt, normalizeId, readSmppReceipt, type IdFormat } from './smpp-receipts.ts'
import type { SmppTimes, Submission } from './smpp-session.ts'
import { splitForSmpp, type SmppPart } from './smpp-text.ts'

const printable = /^[\x21-\x7e]+$/
const tons = ['0', '1', '2', '3', '4', '5', '6']
const npis = ['0', '1', '3', '4', '6', '8', '9', '10', '14', '18']

const fields = {
  host: {
    description: 'the host name or IP address of the SMSC',
    required: true,
    pattern: /^[A-Za-z0-9.:_-]+$/,
    example: 'smpp.example.com',
  },
  port: {
    description: 'the port of the SMSC, usually 3550 with TLS and 2775 without',
    required: true,
    pattern: /^(?!0)\d{1,4}$|^[1-5]\d{4}$|^6[0-4]\d{3}$|^65[0-4]\d\d$|^655[0-2]\d$|^6553[0-5]$/,
    example: '3550',
  },
  tls: {
    description: 'whether the connection uses TLS; turn off only inside a VPN',
    default: 'on',
    choices: ['on', 'off'],
  },
  caCertificate: {
    description: "the CA certificates to trust instead of the system's, in PEM",
    multiline: true,
    pattern: /^\s*-----BEGIN CERTIFICATE-----[^]+-----END CERTIFICATE-----\s*$/,
    example: '"""-----BEGIN CERTIFICATE----- …"""',
  },
  systemId: {
    description: 'the system id (at most 15 characters)',
    required: true,
    pattern: /^[\x21-\x7e]{1,15}$/,
    example: 'acme01',
  },
  password: { description: 'the password', required: true, secret: true, pattern: printable },
  systemType: {
    description: 'the system type, if you were given one',
    pattern: /^[\x21-\x7e]{1,12}$/,
    example: 'CP',
  },
  bind: {
    description: 'the bind type; a transmitter gets no receipts',
    default: 'transceiver',
    choices: ['transceiver', 'transmitter'],
  },
  from: {
    description: 'the sender: a number, a short code or up to 11 letters',
    required: true,
    pattern: /^(\+?\d{3,20}|[\x20-\x7e]{1,11})$/,
    example: 'ACME',
  },
  fromTon: {
    description: 'the type of number (TON) of `from`; default: 5 for letters, 3 for a short code, else 1',
    choices: tons,
  },
  fromNpi: {
    description: 'the numbering plan (NPI) of `from`; default: 0 for letters and short codes, else 1',
    choices: npis,
  },
  toTon: { description: 'the type of number (TON) of recipients', default: '1', choices: tons },
  toNpi: { description: 'the numbering plan (NPI) of recipients', default: '1', choices: npis },
  serviceType: {
    description: 'the service type, if you were given one',
    pattern: /^[\x21-\x7e]{1,5}$/,
    example: 'CMT',
  },
  dataCodingGsm: {
    description: "the data coding of GSM text: 0, the SMSC's default alphabet, or 1",
    default: '0',
    choices: ['0', '1'],
  },
  submitIdFormat: {
    description: 'the format of message ids in responses, if receipts use another one',
    default: 'text',
    choices: idFormats,
  },
  receiptIdFormat: {
    description: 'the format of message ids in receipts',
    default: 'text',
    choices: idFormats,
  },
  enquireLinkSeconds: {
    description: 'the interval between `enquire_link` keep-alives, in seconds',
    default: '30',
    pattern: /^[1-9]\d{0,3}$/,
    example: '30',
  },
} as const

/** Values of `command_status` (SMPP 3.4 §5.1.3), in hexadecimal. 400 to 4FF are specific to the SMSC. */
const codes: CodeTable = {
  '1': 'content_blocked', // length of the message
  '4': 'provider_down', // not bound
  '5': 'provider_down', // bound already
  '8': 'provider_down',
  a: 'sender_invalid',
  b: 'invalid_number',
  d: 'auth_failed', // bind failed
  e: 'auth_failed', // password
  f: 'auth_failed', // system id
  '53': 'auth_failed', // system type
  '14': 'throttled', // queue full
  '15': ['unknown', { permanent: true }], // service type: our settings
  '33': 'invalid_number',
  '48': 'sender_invalid', // source type of number
  '49': 'sender_invalid', // source numbering plan
  '50': ['unknown', { permanent: true }], // destination type of number: our settings
  '51': ['unknown', { permanent: true }],
  '58': 'throttled',
  '64': 'provider_down', // temporary
  '65': 'provider_down', // permanent error at the SMSC
  fe: 'provider_down',
}

/**
 * SMPP 3.4 over one connection, for SMSCs and aggregators. The protocol has no reference field: receipts are
 * matched by message id; if a text has several parts, by the id of the last part.
 */
export const smpp = defineKind({
  kind: 'smpp',
  title: 'SMPP 3.4',
  channels: ['sms'],
  fields,
  create: (settings) => createSmpp(settings),
})

type Settings = SettingValues<typeof fields>

/**
 * Creates a provider that sends over an SMPP session.
 *
 * @param times timeouts; shorter in tests
 */
export function createSmpp(settings: Settings, times?: SmppTimes): Provider {
  const receiptIdFormat = parseIdFormat(settings.receiptIdFormat)
  const submitIdFormat = parseIdFormat(settings.submitIdFormat)
  let receiptListener: ((receipt: Receipt) => void) | undefined
  /** Whether the SMSC marks its receipts. Then an incoming SMS that looks like one is of a stranger. */
  let marksReceipts = false
  let nextReference = 0

  const link = createSmppLink(
    {
      host: settings.host,
      port: Number(settings.port),
      tls: settings.tls === 'on',
      ca: settings.caCertificate,
      systemId: settings.systemId,
      password: settings.password,
      systemType: settings.systemType ?? '',
      bind: settings.bind === 'transmitter' ? 'transmitter' : 'transceiver',
      enquireLinkMs: Number(settings.enquireLinkSeconds) * 1000,
    },
    (pdu) => {
      const isMarked = isMarkedReceipt(pdu)
      marksReceipts ||= isMarked
      const receipt = isMarked || !marksReceipts ? readSmppReceipt(pdu, receiptIdFormat) : undefined
      if (receipt && !receiptListener) return false
      if (receipt) receiptListener?.(receipt)
      return true
    },
    times,
  )

  return {
    async send(message, signal) {
      const parts = splitForSmpp(message.text, nextReference++)
      const common = commonFields(settings, message)
      let outcome = refused(createFailure('unknown', 'EMPTY'))
      for (const [index, part] of parts.entries()) {
        const isLast = index === parts.length - 1
        const fields = { ...common, ...partFields(settings, part), registered_delivery: isLast ? 1 : 0 }
        outcome = readSubmission(await link.submit(fields, signal), submitIdFormat)
        // A phone never shows a text that lacks a part, so the message counts as not accepted.
        if (outcome.kind !== 'accepted') return outcome
      }
      return outcome
    },

    listen(onReceipt, onConnection) {
      receiptListener = onReceipt
      link.open((result) =>
        onConnection(
          result.kind === 'bound'
            ? 'connected'
            : { failure: connectionFailure(result), retryMs: result.retryMs },
        ),
      )
    },

    close: () => link.close(),
  }
}

const parseIdFormat = (text: string): IdFormat => idFormats.find((format) => format === text) ?? 'text'

function commonFields(settings: Settings, { to, validitySeconds }: OutgoingMessage) {
  const { from } = settings
  const isNumber = /^\+?\d+$/.test(from)
  const isShort = isNumber && !from.startsWith('+') && from.length <= 6
  const [ton, npi] = isShort ? ['3', '0'] : isNumber ? ['1', '1'] : ['5', '0']
  return {
    service_type: settings.serviceType ?? '',
    source_addr_ton: Number(settings.fromTon ?? ton),
    source_addr_npi: Number(settings.fromNpi ?? npi),
    source_addr: isNumber ? stripPlus(from) : from,
    dest_addr_ton: Number(settings.toTon),
    dest_addr_npi: Number(settings.toNpi),
    destination_addr: stripPlus(to),
    validity_period: writeValidity(validitySeconds),
  }
}

const partFields = (settings: Settings, { bytes, isUnicode, hasHeader }: SmppPart) => ({
  esm_class: hasHeader ? 0x40 : 0,
  data_coding: isUnicode ? 8 : Number(settings.dataCodingGsm),
  short_message: bytes,
})

/** Formats a relative time (SMPP 3.4 §7.1.1): `YYMMDDhhmmsstnnp`. */
function writeValidity(seconds: number): string {
  const validSeconds = clamp(seconds, 1, 86_399)
  const parts = [Math.floor(validSeconds / 3600), Math.floor(validSeconds / 60) % 60, validSeconds % 60]
  return `000000${parts.map((part) => String(part).padStart(2, '0')).join('')}000R`
}

function connectionFailure({ bindStatus, code }: { bindStatus?: number; code: string }): Failure {
  const failure = bindStatus === undefined ? undefined : findFailure(codes, bindStatus.toString(16))
  return failure ?? createFailure('provider_down', code)
}

function readSubmission(submission: Submission, format: IdFormat): SendOutcome {
  if (submission.kind === 'no_response') return uncertain(submission.code)
  if (submission.kind === 'not_sent') {
    return refused(connectionFailure(submission))
  }
  const { status, messageId } = submission
  if (status === 0) return accepted(messageId === null ? null : normalizeId(messageId, format))
  const code = status.toString(16)
  return refused({
    ...(findFailure(codes, code) ?? createFailure('unknown', code)),
    providerCode: `0x${code}`,
  })
}
