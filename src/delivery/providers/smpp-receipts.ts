import type { Pdu } from 'smpp'
import { createFailure } from '../kit/failures.ts'
import type { Receipt } from '../kit/provider.ts'

/** How an SMSC writes ids; some answer in hexadecimal and put the same number in decimal into receipts. */
export const idFormats = ['text', 'hex', 'decimal'] as const
export type IdFormat = (typeof idFormats)[number]

/** One writing for an id, so that an answer and a receipt in different formats meet. */
export function normalizeId(id: string, format: IdFormat): string {
  if (format === 'hex' && /^[0-9a-f]{1,64}$/i.test(id)) return BigInt(`0x${id}`).toString()
  if (format === 'decimal' && /^\d{1,64}$/.test(id)) return BigInt(id).toString()
  return id
}

/** SMPP 3.4 §5.3.2.35: `message_state`, in the words of the text (appendix B). */
const stateNames = [
  '',
  'ENROUTE',
  'DELIVRD',
  'EXPIRED',
  'DELETED',
  'UNDELIV',
  'ACCEPTD',
  'UNKNOWN',
  'REJECTD',
]

/**
 * The receipt in a `deliver_sm` or a `data_sm` (SMPP 3.4 appendix B), or undefined where it is none: an SMS that
 * somebody sent to us, or a state that tells nothing. Its own parameters come before the text, which every SMSC writes
 * a little differently.
 */
export function readSmppReceipt(pdu: Pdu, format: IdFormat): Receipt | undefined {
  const text = readAscii(pdu['short_message']) || readAscii(pdu['message_payload'])
  const esmClass = pdu['esm_class']
  const isReceipt = typeof esmClass === 'number' && (esmClass & 0x3c) === 0x04
  // Some mark receipts as ordinary messages.
  if (!isReceipt && !/\bid:\S+.*\bstat:/is.test(text)) return undefined

  const id = readAscii(pdu['receipted_message_id']) || /\bid:\s*(\S+)/i.exec(text)?.[1]
  const state = pdu['message_state']
  const stateName =
    (typeof state === 'number' ? stateNames[state] : undefined) ??
    /\bstat:\s*(\w+)/i.exec(text)?.[1]?.toUpperCase()
  if (id === undefined || id === '' || stateName === undefined) return undefined
  const error = /\berr:\s*(\w+)/i.exec(text)?.[1]
  const result = readState(stateName, error === undefined ? stateName : `${stateName} ${error}`)
  return result && { messageId: normalizeId(id, format), requestId: null, ...result }
}

/** Errors have numbers that every network chooses itself. */
function readState(state: string, code: string): Pick<Receipt, 'status' | 'failure'> | undefined {
  switch (state) {
    case 'DELIVRD':
      return { status: 'delivered', failure: null }
    case 'ENROUTE':
    // Read by somebody for the subscriber; and the one that the SMSC lost sight of.
    case 'ACCEPTD':
    case 'UNKNOWN':
      return { status: 'sent', failure: null }
    case 'EXPIRED':
    case 'UNDELIV':
      return { status: 'undelivered', failure: createFailure('unreachable', code) }
    case 'DELETED':
    case 'REJECTD':
      return { status: 'undelivered', failure: createFailure('unknown', code) }
    default:
      return undefined
  }
}

/** Bytes as ASCII, up to the NUL that some put at their end. */
function readAscii(value: unknown): string {
  const text = value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value
  return typeof text === 'string' ? text.replace(/\0.*$/s, '') : ''
}
