/** Amount and payee of a payment, as a caller sends them. */
export type Payment = { amount: string; payee: string }

/** Differ in one value, or have the characters of another one in the other. */
export const payments: readonly Payment[] = [
  { amount: '9.99 EUR', payee: 'Ada Books' },
  { amount: '99.9 EUR', payee: 'Ada Books' },
  { amount: '9.99 EUR', payee: 'Ada' },
  { amount: '9.99 EU', payee: 'R Ada Books' },
]

/** Which payment a verification repeats. */
export const repetitions = ['same', 'none', 'another'] as const
export type Repetition = (typeof repetitions)[number]

/** The payment that a verification has. */
export function repeatPayment(sent: Payment | null, repetition: Repetition): Payment | null {
  if (repetition === 'same') return sent
  if (repetition === 'none') return null
  return payments[(payments.findIndex((one) => isSamePayment(one, sent)) + 1) % payments.length] ?? null
}

export const isSamePayment = (one: Payment | null, other: Payment | null): boolean =>
  one?.amount === other?.amount && one?.payee === other?.payee
