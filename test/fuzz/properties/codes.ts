import { expect } from 'bun:test'
import { createIds, isId } from '../../../src/domain/model/ids.ts'
import { deriveKeys } from '../../helpers/keys.ts'
import { deriveCode, hashCode, matchesCode } from '../../../src/domain/model/code.ts'
import { afterFailure, refuseSpentBudget } from '../../../src/domain/limits/check-budget.ts'
import type { CheckBudget } from '../../../src/domain/model/phone-record.ts'
import { defineProperty } from '../property.ts'
import { possiblePhone } from './texts.ts'

import * as fc from 'fast-check'

const keys = deriveKeys(new Uint8Array(32).fill(1))
const otherKeys = deriveKeys(new Uint8Array(32).fill(2))
const code = fc.integer({ min: 0, max: 999_999 }).map((n) => String(n).padStart(6, '0'))
const hourMs = 3_600_000

/** Returns the seconds to wait, or 0 if codes of the phone may be checked. */
const waitSeconds = (budget: CheckBudget | null, now: number, failuresMax: number): number =>
  refuseSpentBudget(budget, failuresMax, now)?.rejected.retryAfterSeconds ?? 0

export const codeProperties = [
  defineProperty(
    'a code is six digits, always the same for its request, and matches no other request',
    2_000,
    () => {
      const salt = fc
        .uint8Array({ minLength: 16, maxLength: 16 })
        .map((bytes) => Buffer.from(bytes).toString('base64url'))
      const environment = fc.constantFrom('live', 'test')
      const request = fc.record({
        id: fc.uuid().map((id) => `otp_${id}`),
        codeSalt: salt,
        phone: possiblePhone,
        environment,
      })
      const property = fc.property(request, (source) => {
        const derived = deriveCode(keys, source)
        expect(derived).toMatch(/^[0-9]{6}$/)
        expect(deriveCode(keys, source)).toBe(derived)
        const stored = hashCode(keys, source.id, derived)
        expect(matchesCode(keys, source.id, derived, stored)).toBe(true)
        expect(matchesCode(otherKeys, source.id, derived, stored)).toBe(false)
      })
      return { property }
    },
  ),

  defineProperty('a hash matches only the code of its own request', 2_000, () => ({
    property: fc.property(code, code, fc.string({ minLength: 1 }), (right, other, id) => {
      const stored = hashCode(keys, id, right)
      expect(matchesCode(keys, id, right, stored)).toBe(true)
      expect(matchesCode(keys, id, other, stored)).toBe(other === right)
      expect(matchesCode(keys, `${id}x`, right, stored)).toBe(false)
      expect(stored).not.toContain(right)
    }),
  })),

  defineProperty('a hash of a payment matches only its own amount and payee', 2_000, () => {
    const variables = fc.record({ amount: fc.string(), payee: fc.string() })
    return {
      property: fc.property(code, variables, variables, fc.nat(), (right, own, other, at) => {
        const text = `${own.amount}${own.payee}`
        const cut = at % (text.length + 1)
        const shifted = { amount: text.slice(0, cut), payee: text.slice(cut) }
        const stored = hashCode(keys, 'otp_1', right, own)
        for (const one of [own, other, shifted]) {
          const isSame = one.amount === own.amount && one.payee === own.payee
          expect(matchesCode(keys, 'otp_1', right, stored, one)).toBe(isSame)
        }
        expect(matchesCode(keys, 'otp_1', right, stored)).toBe(false)
      }),
    }
  }),

  defineProperty('ids have only their own kind, and sort in order of creation', 1_000, () => ({
    property: fc.property(
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 2, maxLength: 50 }),
      fc.infiniteStream(fc.nat(255)),
      (gaps, randomBytes) => {
        let now = 1_800_000_000_000
        const newId = createIds({ now: () => now }, (bytes) => {
          for (let index = 0; index < bytes.length; index++) bytes[index] = randomBytes.next().value ?? 0
        })
        const ids = gaps.map((gapMs) => {
          now += gapMs
          return newId('otp')
        })
        expect(ids.toSorted()).toEqual(ids)
        expect(new Set(ids).size).toBe(ids.length)
        expect(ids.every((id) => isId('otp', id) && !isId('app', id))).toBe(true)
      },
    ),
  })),

  defineProperty('a phone never has more failed checks than its budget plus one an hour', 300, () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 2 * hourMs }), { maxLength: 200 })
    const property = fc.property(gaps, fc.integer({ min: 1, max: 30 }), (gapsMs, failuresMax) => {
      let budget: CheckBudget | null = null
      let now = 1_800_000_000_000
      const failures: number[] = []
      for (const gapMs of gapsMs) {
        now += gapMs
        if (waitSeconds(budget, now, failuresMax) > 0) continue
        budget = afterFailure(budget, now)
        failures.push(now)
      }
      for (const [index, from] of failures.entries()) {
        for (const [extra, until] of failures.slice(index).entries()) {
          const allowed = failuresMax + Math.floor((until - from) / hourMs)
          if (extra + 1 > allowed) throw new Error(`${extra + 1} failures in ${until - from} ms`)
        }
      }
    })
    return { property }
  }),
]
