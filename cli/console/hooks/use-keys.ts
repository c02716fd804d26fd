import { useEffectEvent, useLayoutEffect, useRef } from 'react'
import { useConsole } from '../console-context.ts'
import type { ActiveLayer, Handler, Layer } from '../key-router.ts'
import type { Action, Section } from '../keymap.ts'

type KeyOptions = {
  isModal?: boolean
  onText?: Layer['onText']
  /** The section is inactive while false. */
  isActive?: boolean
}

/**
 * Activates a section of the keymap while the component is mounted. Actions that are left out, null or undefined have no key.
 * A handler `{ unavailable: 'reason' }` keeps its key and shows the reason when it is pressed.
 */
export function useKeys<S extends Section>(
  section: S,
  handlers: { [A in Action<S>]?: Handler | null | undefined },
  { isModal = false, onText, isActive = true }: KeyOptions = {},
) {
  const { keys } = useConsole()
  const activeLayer = useRef<ActiveLayer>(null)
  // After every render, as handlers close over what was rendered.
  useLayoutEffect(() => activeLayer.current?.update(handlers, onText))
  const currentHandlers = useEffectEvent(() => ({ handlers, onText }))
  useLayoutEffect(() => {
    if (!isActive) return undefined
    const layer = keys.add({ section, isModal, ...currentHandlers() })
    activeLayer.current = layer
    return () => {
      layer.remove()
      activeLayer.current = null
    }
  }, [keys, section, isModal, isActive])
}
