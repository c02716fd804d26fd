import { valuesInKeyOrder } from './engine/key-order.ts'

export type ChangedRows<T> = ReturnType<typeof createChangedRows<T>>

/** Holds rows of one table as a transaction leaves them, by their keys. */
export function createChangedRows<T>() {
  const rows = new Map<string | number, { value: T; isNew: boolean }>()
  const list = (isNew: boolean): T[] =>
    valuesInKeyOrder(rows).flatMap((row) => (row.isNew === isNew ? [row.value] : []))
  const isNew = (key: string | number): boolean => rows.get(key)?.isNew === true
  return {
    isNew,
    get: (key: string | number): T | undefined => rows.get(key)?.value,
    /** Sets a row, which stays new if it was added before. */
    set: (key: string | number, value: T, isAdded = false): void =>
      void rows.set(key, { value, isNew: isAdded || isNew(key) }),
    /** Lists all rows in the order of their keys. */
    all: (): T[] => valuesInKeyOrder(rows).map(({ value }) => value),
    added: (): T[] => list(true),
    updated: (): T[] => list(false),
    clear: (): void => rows.clear(),
  }
}
