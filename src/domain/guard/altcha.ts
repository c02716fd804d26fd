import { createHash } from 'node:crypto'
import { hmac, timingSafeEqualBytes } from '../../shared/hmac.ts'
import type { Random } from '../model/random.ts'
import { isRecord } from '../../shared/json.ts'
import { minuteMs } from '../../shared/durations.ts'

/**
 * A proof of work in the format of the ALTCHA widget (proof of work v1, which versions 1 to 3 of the widget solve): the number
 * from 0 to `maxnumber` that gives `challenge` as the SHA-256 of `salt` and number.
 */
export type AltchaChallenge = {
  algorithm: 'SHA-256'
  challenge: string
  maxnumber: number
  salt: string
  signature: string
}

/** Half of them are tried on average: a second of a browser on two cores, a few of a slow phone. */
const maxNumber = 200_000
const lifetimeMs = 10 * minuteMs

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const sign = (key: Uint8Array, challenge: string) => hmac(key).update(challenge).digest('hex')

/** Creates a challenge. Nothing is stored: its signature and the time in its salt are all that the check needs. */
export function createAltcha(key: Uint8Array, random: Random, now: number): AltchaChallenge {
  const bytes = new Uint8Array(18)
  random(bytes)
  const number = Buffer.from(bytes).readUIntBE(0, 6) % (maxNumber + 1)
  // The last character separates the time from the number: else digits could move from one to the other.
  const salt = `${bytes.subarray(6).toHex()}?expires=${Math.floor((now + lifetimeMs) / 1000)}&`
  const challenge = sha256(`${salt}${number}`)
  return { algorithm: 'SHA-256', challenge, maxnumber: maxNumber, salt, signature: sign(key, challenge) }
}

/**
 * Checks a solution: base64 of JSON, as the widget makes it.
 *
 * @returns the challenge that it solves; undefined if it is wrong or too old
 */
export function checkAltcha(key: Uint8Array, token: string, now: number): string | undefined {
  const { algorithm, challenge, number, salt, signature } = decode(token)
  if (algorithm !== 'SHA-256' || typeof salt !== 'string' || typeof signature !== 'string') return undefined
  const seconds = /^[0-9a-f]{24}\?expires=(\d{1,12})&$/.exec(salt)?.[1]
  if (seconds === undefined || !Number.isSafeInteger(number)) return undefined
  const expected = sha256(`${salt}${String(number)}`)
  if (Number(seconds) * 1000 <= now || challenge !== expected) return undefined
  const isSigned = timingSafeEqualBytes(Buffer.from(signature), Buffer.from(sign(key, expected)))
  return isSigned ? expected : undefined
}

function decode(token: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64').toString('utf8'))
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}
