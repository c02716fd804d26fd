import { useLayoutEffect, useRef } from 'react'
import { useConsole } from '../console-context.ts'
import type { Handler, Layer } from '../key-router.ts'
import type { Action, Section } from '../keymap.ts'

export type KeyOptions = {
  isModal?: boolean
  onText?: Layer['onText']
  /** Out of force while false. */
  isActive?: boolean
}

/**
 * Puts a section of the keymap in force while the component is there. Actions that are left out, or undefined, have no
 * key now; one that cannot be done for a reason is `{ unavailable: 'the reason' }`, and says so when it is pressed.
 */
export function useKeys<S extends Section>(
  section: S,
  handlers: { [A in Action<S>]?: Handler | undefined },
  { isModal = false, onText, isActive = true }: KeyOptions = {},
) {
  const { keys } = useConsole()
  const layer = useRef<Layer>({ section, handlers: {}, isModal, onText })
  const current = layer.current
  useLayoutEffect(() => {
    current.handlers = handlers
    current.onText = onText
    keys.update(current)
  })
  useLayoutEffect(() => (isActive ? keys.add(current) : undefined), [keys, current, isActive])
}
