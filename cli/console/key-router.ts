import { sectionBindings, priorityOf, type Binding, type Section } from './keymap.ts'
import { createStore } from './store.ts'

/** The effect of a key at the moment: an action, or a reason why there is none. */
export type Handler =
  | (() => void)
  | { run(): void; label?: string | undefined }
  | { unavailable: string; label?: string | undefined }

export type Layer = {
  section: Section
  /** By the name of the action. Without a handler, its keys do nothing. */
  handlers: Partial<Record<string, Handler | null>>
  /** Blocks every key that it does not handle from the layers below. */
  isModal: boolean
  /** Receives typed text, one key or one paste at a time, and the editing keys by name. */
  onText?: ((typedInput: TypedInput) => void) | undefined
}

export type ActiveLayer = {
  /** Replaces the handlers. Footer and help are drawn again only when what they show has changed. */
  update(handlers: Layer['handlers'], onText: Layer['onText']): void
  remove(): void
}

export type TypedInput = { key: 'backspace' | 'ctrl-u' | 'ctrl-w' } | { text: string }

/** A binding of an active layer, as footer and help show it. */
export type ActiveBinding = Binding & { action: string; section: Section; unavailable: string | null }

export type KeyRouter = ReturnType<typeof createKeyRouter>

const readOnlyReason = 'the console was started with --read-only'

/** Dispatches each key to the topmost active layer that handles it. */
export function createKeyRouter({
  isReadOnly,
  notify,
}: {
  isReadOnly: boolean
  notify(reason: string): void
}) {
  const entries: { layer: Layer; signature: string }[] = []
  const queue: (() => void)[] = []
  const version = createStore<number>(0)
  const notifyChange = () => version.set((previous) => previous + 1)

  /** Topmost first, down to the first modal layer. */
  function activeLayers(): Layer[] {
    const sorted = entries
      .map(({ layer }, index) => ({ layer, rank: priorityOf(layer.section) * 1000 + index }))
      .toSorted((a, b) => b.rank - a.rank)
      .map(({ layer }) => layer)
    const modalIndex = sorted.findIndex(({ isModal }) => isModal)
    return modalIndex === -1 ? sorted : sorted.slice(0, modalIndex + 1)
  }

  const unavailableReason = (binding: Binding, handler: Handler) => {
    if (isReadOnly && binding.mutates) return readOnlyReason
    return typeof handler === 'object' && 'unavailable' in handler ? handler.unavailable : null
  }

  function layerBindings(layer: Layer): ActiveBinding[] {
    return sectionBindings(layer.section).flatMap(([action, binding]) => {
      const handler = layer.handlers[action]
      if (!handler) return []
      const label = typeof handler === 'object' ? (handler.label ?? binding.label) : binding.label
      const { section } = layer
      return [{ ...binding, label, action, section, unavailable: unavailableReason(binding, handler) }]
    })
  }

  const layerSignature = (layer: Layer) =>
    JSON.stringify([
      layer.isModal,
      layerBindings(layer).map(({ action, label, unavailable }) => [action, label, unavailable]),
    ])

  return {
    version,
    /** Activates a layer until `remove` is called. */
    add(layer: Layer): ActiveLayer {
      const entry = { layer, signature: layerSignature(layer) }
      entries.push(entry)
      notifyChange()
      return {
        update(handlers, onText) {
          entry.layer = { ...entry.layer, handlers, onText }
          const signature = layerSignature(entry.layer)
          if (entry.signature === signature) return
          entry.signature = signature
          notifyChange()
        },
        remove() {
          entries.splice(entries.indexOf(entry), 1)
          notifyChange()
        },
      }
    },
    /** Returns the active bindings, topmost section first, without those whose keys a layer above takes. */
    activeBindings(): ActiveBinding[] {
      const claimedKeys = new Set<string>()
      const bindings = activeLayers().flatMap((layer) =>
        layerBindings(layer).filter(({ keys }) => {
          const freeKeys = keys.filter((key) => !claimedKeys.has(key))
          for (const key of freeKeys) claimedKeys.add(key)
          return freeKeys.length > 0
        }),
      )
      return inKeymapOrder(bindings)
    },
    /** Queues a key: it is dispatched once the effect of the key before it is rendered, so that a dialog gets its keys. */
    press(key: string) {
      enqueue(() => dispatchKey(key))
    },
    /** Passes pasted text to the layer that takes text, and drops it otherwise: a paste must never act as keys. */
    paste(text: string) {
      enqueue(() =>
        activeLayers()
          .find(({ onText }) => onText !== undefined)
          ?.onText?.({ text }),
      )
    },
  }

  function enqueue(input: () => void) {
    queue.push(input)
    if (queue.length === 1) processNext()
  }

  function processNext() {
    const [input] = queue
    if (input === undefined) return
    input()
    // A store change makes React render synchronously, together with all pending state updates.
    notifyChange()
    setImmediate(() => {
      queue.shift()
      processNext()
    })
  }

  function dispatchKey(key: string) {
    for (const layer of activeLayers()) {
      const match = sectionBindings(layer.section).find(
        ([action, binding]) => binding.keys.includes(key) && layer.handlers[action],
      )
      const [action = '', binding] = match ?? []
      const handler = layer.handlers[action]
      if (binding && handler) return runHandler(binding, handler)
      const typedInput = toTypedInput(key)
      if (layer.onText !== undefined && typedInput !== null) return layer.onText(typedInput)
    }
  }

  function runHandler(binding: Binding, handler: Handler) {
    const unavailable = unavailableReason(binding, handler)
    if (unavailable !== null) return notify(`${binding.keys[0]} is unavailable: ${unavailable}`)
    if (typeof handler === 'function') handler()
    else if ('run' in handler) handler.run()
  }
}

/** Sorts the bindings of each section as the keymap does: which of its layers is on top depends on what was loaded first. */
const inKeymapOrder = (bindings: ActiveBinding[]) =>
  [...Map.groupBy(bindings, ({ section }) => section)].flatMap(([section, ofSection]) =>
    sectionBindings(section).flatMap(([action]) => ofSection.filter((binding) => binding.action === action)),
  )

function toTypedInput(key: string): TypedInput | null {
  if (key === 'backspace' || key === 'ctrl-u' || key === 'ctrl-w') return { key }
  return [...key].length === 1 && key >= ' ' ? { text: key } : null
}

/** Returns the text after the input was typed at its end. Control characters of a paste are dropped. */
export function applyTyping(previous: string, typedInput: TypedInput): string {
  if ('text' in typedInput) return previous + typedInput.text.replaceAll(/\p{Cc}/gu, '')
  if (typedInput.key === 'backspace') return [...previous].slice(0, -1).join('')
  return typedInput.key === 'ctrl-u' ? '' : previous.replace(/\S*\s*$/, '')
}
