import type { PhoneSlot } from '../domain/store/phones.ts'
import { compareKeys, valuesInKeyOrder } from './engine/key-order.ts'

/** A row as a transaction leaves it. */
export type Changed<T> = { value: T; isNew: boolean }

/** Inserts or updates changed rows, in the order of their keys. */
export async function saveEach<T>(
  changed: ReadonlyMap<string, Changed<T>>,
  store: { insert(value: T): Promise<void>; update(value: T): Promise<void> },
): Promise<void> {
  for (const { value, isNew } of valuesInKeyOrder(changed))
    await (isNew ? store.insert(value) : store.update(value))
}

/** Adds counts to those so far, which may have others. */
export function sum<C extends Record<string, number | undefined>>(before: C | undefined, changes: C): C {
  if (!before) return changes
  const sums: Record<string, number | undefined> = { ...before }
  for (const name in changes) sums[name] = (sums[name] ?? 0) + (changes[name] ?? 0)
  return sums as C
}

/** New records last, which get the next keys. By their hashes: two transactions that insert the same wait for each other. */
export const byPhoneKey = (a: { slot: PhoneSlot }, b: { slot: PhoneSlot }) =>
  compareKeys(a.slot.row?.key ?? Infinity, b.slot.row?.key ?? Infinity) ||
  compareKeys(a.slot.hash, b.slot.hash)
