import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { createLog } from '../../../src/log/log.ts'
import { scrub } from '../../../src/shared/redact.ts'
import { testClock } from '../../helpers/clock.ts'
import { defineProperty } from '../property.ts'
import { possiblePhone } from './texts.ts'

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
const base64url = (length: number) =>
  fc.string({
    unit: fc.constantFrom(...'ABCXYZabcxyz0189_-'),
    minLength: length,
    maxLength: length,
  })

/** A secret, and the part of it that must not be visible. */
const secret = fc.oneof(
  fc.tuple(
    fc.constantFrom('ph_live_secret_', 'ph_test_secret_', 'ph_live_api_', 'ph_test_api_', 'whsec_'),
    hex(48),
  ),
  fc.tuple(fc.constantFrom('st_', 'rt_'), base64url(43)),
  fc.tuple(
    fc.constantFrom('', 'Bearer '),
    base64url(60).map((text) => `eyJ${text}.${text}.${text}`),
  ),
  fc.tuple(fc.constant(''), hex(64)),
)

const phoneForm = possiblePhone.chain((phone) =>
  fc
    .constantFrom(
      phone,
      encodeURIComponent(phone),
      encodeURIComponent(encodeURIComponent(phone)),
      phone.replace('+', '00'),
      `${phone.slice(0, 4)} ${phone.slice(4, 7)}-${phone.slice(7)}`,
      `${phone.slice(0, 3)} (${phone.slice(3, 6)}) ${phone.slice(6)}`,
    )
    .map((form) => ({ phone, form })),
)

/** Text around a secret, without word characters that would extend it. */
const surroundingText = fc.string({
  unit: fc.constantFrom(...'abc xyz ,;:.!?"\'{}[]/\n\t=&é✓'),
  maxLength: 40,
})
const separator = fc.constantFrom(' ', '"', '\n', ', ', '(', ': ')

/** Removes separators between the digits of a number. */
const digitsOnly = (text: string) => text.replaceAll(/[^0-9•]/g, '')

export const maskingProperties = [
  defineProperty('no secret is visible, whatever surrounds it', 2_000, () => ({
    property: fc.property(
      surroundingText,
      separator,
      secret,
      separator,
      surroundingText,
      (before, left, [prefix, body], right, after) => {
        const scrubbed = scrub(before + left + prefix + body + right + after)
        for (let offset = 0; offset + 16 <= body.length; offset += 8)
          expect(scrubbed).not.toContain(body.slice(offset, offset + 16))
      },
    ),
  })),

  defineProperty('at most the country and the last four digits of a phone number are visible', 2_000, () => ({
    property: fc.property(
      surroundingText,
      separator,
      phoneForm,
      separator,
      surroundingText,
      (before, left, { phone, form }, right, after) => {
        const scrubbed = digitsOnly(scrub(before + left + form + right + after))
        expect(scrubbed).not.toContain(phone.slice(-5))
        expect(scrubbed).not.toContain(phone.slice(2, 7))
      },
    ),
  })),

  defineProperty('a code on its own is never visible', 2_000, () => ({
    property: fc.property(
      surroundingText,
      separator,
      fc.integer({ min: 0, max: 999_999 }).map((code) => String(code).padStart(6, '0')),
      separator,
      surroundingText,
      (before, left, code, right, after) => {
        expect(scrub(before + left + code + right + after)).not.toContain(code)
      },
    ),
  })),

  defineProperty(
    'a log call writes one line, whatever it contains, and valid JSON in the JSON format',
    1_000,
    () => {
      const fields = fc.dictionary(
        fc.string({ unit: 'binary', maxLength: 12 }),
        fc.anything({ withBigInt: true }),
        { maxKeys: 5 },
      )
      const property = fc.asyncProperty(
        fc.string({ unit: 'binary' }),
        fields,
        fc.constantFrom('text', 'json'),
        async (message, logFields, format) => {
          let written = ''
          const log = createLog({
            format,
            level: 'debug',
            write: async (lines) => void (written += lines),
            clock: testClock(),
          })
          log.info(message, logFields)
          await log.flush()
          expect(written.endsWith('\n')).toBe(true)
          expect(written.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
          if (format === 'json') expect(JSON.parse(written)).toMatchObject({ level: 'info' })
        },
      )
      return { property }
    },
  ),
]
