import { createHmac, timingSafeEqual } from 'node:crypto'

/** RFC 6238 §4, with the values that authenticator apps assume: SHA-1, 30 seconds, six digits. */
const stepSeconds = 30
const digits = 6
/** RFC 6238 §5.2: one step either way, for the delay of typing and for clocks that differ. */
export const totpStepsOffMax = 1
const stepsOff = [0, -totpStepsOffMax, totpStepsOffMax]

/** RFC 4226 §4 recommends 160 bits, the length of a SHA-1. */
export const totpSecretBytes = 20

/** Returns the time step of a moment in milliseconds (RFC 6238 §4.2). */
export const totpStep = (nowMs: number) => Math.floor(nowMs / 1000 / stepSeconds)

/** Returns the beginning of a time step in milliseconds. */
export const totpStepStart = (step: number) => step * stepSeconds * 1000

/** Computes the code of a time step (RFC 4226 §5.3). */
export function totpCode(secret: Uint8Array, step: number, length = digits): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const digest = createHmac('sha1', secret).update(counter).digest()
  const offset = digest.readUInt8(digest.length - 1) & 0xf
  const number = digest.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** length).padStart(length, '0')
}

/** Finds the time step whose code this is, among the current one and its neighbors; undefined if there is none. */
export function findTotpStep(secret: Uint8Array, code: string, nowMs: number): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined
  const current = totpStep(nowMs)
  return stepsOff
    .map((off) => current + off)
    .find((step) => timingSafeEqual(Buffer.from(totpCode(secret, step)), Buffer.from(code)))
}

/** Encodes a secret as authenticator apps expect it: base32 without padding (RFC 4648 §6). */
export function encodeBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? [])
    .map((group) => base32[Number.parseInt(group.padEnd(5, '0'), 2)])
    .join('')
}

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/**
 * Builds the URI that an authenticator app reads from a QR code (Key Uri Format of Google Authenticator). Only values
 * that every app assumes anyway are left out.
 *
 * @param account shown by the app, so that codes of several accounts can be told apart
 */
export function totpUri(secret: Uint8Array, account: string): string {
  const issuer = 'otpd'
  const label = `${issuer}:${encodeURIComponent(account)}`
  return `otpauth://totp/${label}?secret=${encodeBase32(secret)}&issuer=${issuer}`
}
