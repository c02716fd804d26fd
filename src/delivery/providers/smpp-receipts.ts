import type { Pdu } from 'smpp'
import { createFailure } from '../kit/failures.ts'
import type { Receipt } from '../kit/provider.ts'

/**
 * How an SMSC writes message ids. Some respond in hexadecimal, and write the same number in decimal in
 * receipts.
 */
export const idFormats = ['text', 'hex', 'decimal'] as const
export type IdFormat = (typeof idFormats)[number]

/** Normalizes an id, so that response and receipt match although their formats differ. */
export function normalizeId(id: string, format: IdFormat): string {
  if (format === 'hex' && /^[0-9a-f]{1,64}$/i.test(id)) return BigInt(`0x${id}`).toString()
  if (format === 'decimal' && /^\d{1,64}$/.test(id)) return BigInt(id).toString()
  return id
}

/** Names, as in receipt texts (appendix B), of the values of `message_state` (SMPP 3.4 §5.3.2.35). */
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

/** Whether the SMSC marks this as a receipt. Some mark none. */
export function isMarkedReceipt(pdu: Pdu): boolean {
  const esmClass = pdu['esm_class']
  return typeof esmClass === 'number' && (esmClass & 0x3c) === 0x04
}

/**
 * Reads the receipt in a `deliver_sm` or `data_sm` (SMPP 3.4 appendix B); undefined for an incoming SMS or an
 * unknown state. Optional parameters take precedence over the text, whose format varies between SMSCs.
 */
export function readSmppReceipt(pdu: Pdu, format: IdFormat): Receipt | undefined {
  const text = readAscii(pdu['short_message']) || readAscii(pdu['message_payload'])
  if (!isMarkedReceipt(pdu) && !looksLikeReceipt(text)) return undefined

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

/** Whether a text has an id, and a state after it. Anyone may send an SMS, so one pattern for both would take too long. */
function looksLikeReceipt(text: string): boolean {
  const id = /\bid:\S/i.exec(text)
  const state = /\bstat:/gi
  state.lastIndex = id ? id.index + id[0].length : 0
  return id !== null && state.test(text)
}

/** Maps a receipt state. Error numbers differ between networks, so they are only passed on as the code. */
function readState(state: string, code: string): Pick<Receipt, 'status' | 'failure'> | undefined {
  switch (state) {
    case 'DELIVRD':
      return { status: 'delivered', failure: null }
    case 'ENROUTE':
    // ACCEPTD: customer service read the message for the subscriber. UNKNOWN: the SMSC lost track of it.
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

/** Decodes bytes as ASCII, up to the NUL that some SMSCs append. */
function readAscii(value: unknown): string {
  const text = value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value
  return typeof text === 'string' ? text.replace(/\0.*$/s, '') : ''
}
