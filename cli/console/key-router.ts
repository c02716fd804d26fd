import { bindingsOf, levelOf, type Binding, type Section } from './keymap.ts'
import { createStore } from './store.ts'

/** What a key does now: something, or nothing for a reason that is worth telling. */
export type Handler =
  | (() => void)
  | { run(): void; label?: string | undefined }
  | { unavailable: string; label?: string | undefined }

export type Layer = {
  section: Section
  handlers: Partial<Record<string, Handler>>
  /** Keys that it does not know go no further. */
  isModal: boolean
  /** Takes typed text, one key or a whole paste at a time; `backspace`, `ctrl-u` and `ctrl-w` come by these names. */
  onText?: ((typed: Typed) => void) | undefined
}

export type Typed = { key: 'backspace' | 'ctrl-u' | 'ctrl-w' } | { text: string }

/** A binding that is in force, as footer and help show it. */
export type Shown = Binding & { action: string; section: Section; unavailable: string | null }

export type KeyRouter = ReturnType<typeof createKeyRouter>

const readOnlyReason = 'not in a console that was started with --read-only'

/** Gives each key to the nearest layer that knows it. */
export function createKeyRouter({ isReadOnly, tell }: { isReadOnly: boolean; tell(reason: string): void }) {
  const layers: { layer: Layer; signature: string }[] = []
  const waiting: (() => void)[] = []
  const version = createStore<number>(0)
  const changed = () => version.set((before) => before + 1)

  /** The nearest first, down to the first modal one. */
  function inForce(): Layer[] {
    const ordered = layers
      .map(({ layer }, index) => ({ layer, rank: levelOf(layer.section) * 1000 + index }))
      .toSorted((a, b) => b.rank - a.rank)
      .map(({ layer }) => layer)
    const modal = ordered.findIndex(({ isModal }) => isModal)
    return modal === -1 ? ordered : ordered.slice(0, modal + 1)
  }

  const unavailableOf = (binding: Binding, handler: Handler) => {
    if (isReadOnly && binding.mutates) return readOnlyReason
    return typeof handler === 'object' && 'unavailable' in handler ? handler.unavailable : null
  }

  function shownOf(layer: Layer): Shown[] {
    return bindingsOf(layer.section).flatMap(([action, binding]) => {
      const handler = layer.handlers[action]
      if (handler === undefined) return []
      const label = typeof handler === 'object' ? (handler.label ?? binding.label) : binding.label
      const { section } = layer
      return [{ ...binding, label, action, section, unavailable: unavailableOf(binding, handler) }]
    })
  }

  const signatureOf = (layer: Layer) =>
    JSON.stringify([
      layer.isModal,
      shownOf(layer).map(({ action, label, unavailable }) => [action, label, unavailable]),
    ])

  return {
    version,
    /** Puts the layer in force; the function that it gives takes it away. */
    add(layer: Layer) {
      const entry = { layer, signature: signatureOf(layer) }
      layers.push(entry)
      changed()
      return () => {
        layers.splice(layers.indexOf(entry), 1)
        changed()
      }
    },
    /** To be called when a layer was given other handlers: footer and help are told only of what they show. */
    update(layer: Layer) {
      const entry = layers.find((one) => one.layer === layer)
      const signature = signatureOf(layer)
      if (entry === undefined || entry.signature === signature) return
      entry.signature = signature
      changed()
    },
    /** Every binding in force, the nearest first, without those that a nearer one hides. */
    shown(): Shown[] {
      const taken = new Set<string>()
      return inForce().flatMap((layer) =>
        shownOf(layer).filter(({ keys }) => {
          const free = keys.filter((key) => !taken.has(key))
          for (const key of free) taken.add(key)
          return free.length > 0
        }),
      )
    },
    /** What one key opens, the next one is for: it waits until that is on the screen. */
    press(key: string) {
      inTurn(() => pressNow(key))
    },
    /** Pasted text is typed where something takes text, and is nothing elsewhere: it must not act as keys. */
    paste(text: string) {
      inTurn(() =>
        inForce()
          .find(({ onText }) => onText !== undefined)
          ?.onText?.({ text }),
      )
    },
  }

  function inTurn(input: () => void) {
    waiting.push(input)
    if (waiting.length === 1) takeNext()
  }

  function takeNext() {
    const [input] = waiting
    if (input === undefined) return
    input()
    // React draws at once what a store tells of, and all else with it.
    changed()
    setImmediate(() => {
      waiting.shift()
      takeNext()
    })
  }

  function pressNow(key: string) {
    for (const layer of inForce()) {
      const found = bindingsOf(layer.section).find(
        ([action, binding]) => binding.keys.includes(key) && layer.handlers[action] !== undefined,
      )
      const [action = '', binding] = found ?? []
      const handler = layer.handlers[action]
      if (binding !== undefined && handler !== undefined) return act(binding, handler)
      const typed = typedOf(key)
      if (layer.onText !== undefined && typed !== null) return layer.onText(typed)
    }
  }

  function act(binding: Binding, handler: Handler) {
    const unavailable = unavailableOf(binding, handler)
    if (unavailable !== null) return tell(`${binding.keys[0]} is unavailable: ${unavailable}`)
    if (typeof handler === 'function') handler()
    else if ('run' in handler) handler.run()
  }
}

function typedOf(key: string): Typed | null {
  if (key === 'backspace' || key === 'ctrl-u' || key === 'ctrl-w') return { key }
  return [...key].length === 1 && key >= ' ' ? { text: key } : null
}

/** The text after this was typed at its end. Line breaks of a paste are left out. */
export function typeInto(before: string, typed: Typed): string {
  if ('text' in typed) return before + typed.text.replaceAll(/\p{Cc}/gu, '')
  if (typed.key === 'backspace') return [...before].slice(0, -1).join('')
  return typed.key === 'ctrl-u' ? '' : before.replace(/\S*\s*$/, '')
}
