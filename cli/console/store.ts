import { useSyncExternalStore } from 'react'

/** An observable value. */
export type Store<T> = {
  get(): T
  set(update: (previous: T) => T): void
  subscribe(listener: () => void): () => void
}

/** Creates a store. Listeners are called only when `set` changes the value. */
export function createStore<T>(initial: T): Store<T> {
  let value = initial
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(update) {
      const next = update(value)
      if (next === value) return
      value = next
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Reads a store, and renders the component again when its value changes. */
export function useStore<T>(store: Store<T>): T
/**
 * Reads a part of a store, and renders the component again when that part changes.
 *
 * @param select picks the part; must return the same object while the part is unchanged
 */
export function useStore<T, Part>(store: Store<T>, select: (value: T) => Part): Part
export function useStore<T>(store: Store<T>, select: (value: T) => unknown = (value) => value): unknown {
  return useSyncExternalStore(store.subscribe, () => select(store.get()))
}
