import type { ProviderSettings, Receipt } from '../domain/model/delivery.ts'
import { createBreaker, type Breaker } from './circuit-breaker.ts'
import type { ProviderKind, ProviderNeeds } from './kit/kinds.ts'
import type { Provider } from './kit/provider.ts'

/** A provider at work, and how it fares. */
export type Post = {
  readonly name: string
  readonly provider: Provider
  readonly breaker: Breaker
  /** Messages that it is being offered. */
  inFlight: number
}

export type Fleet = ReturnType<typeof createFleet>

/**
 * The operator's providers. New settings may come at any time: a provider whose own have not changed stays as it is,
 * with its connections; one that is gone ends with the last message that it is being offered.
 *
 * @param needs.onReceipt told by providers that have a connection of their own for it
 */
export function createFleet(needs: {
  kinds: readonly ProviderKind[]
  provider: ProviderNeeds
  onReceipt(name: string, receipt: Receipt): void
}) {
  let posts = new Map<string, Post & { settings: string }>()
  const retired = new Set<Post>()

  function open({ name, kind, values }: ProviderSettings, settings: string) {
    const found = needs.kinds.find((one) => one.kind === kind)
    if (!found) throw new Error(`there is no kind of provider ${kind}`)
    const provider = found.create(values, needs.provider)
    provider.listen?.((receipt) => needs.onReceipt(name, receipt))
    return { name, provider, breaker: createBreaker(), inFlight: 0, settings }
  }

  async function closeIfIdle(post: Post) {
    if (!retired.has(post) || post.inFlight > 0) return
    retired.delete(post)
    await post.provider.close?.()
  }

  return {
    /** Takes checked settings. */
    async apply(providers: readonly ProviderSettings[]): Promise<void> {
      const next: typeof posts = new Map()
      for (const one of providers) {
        const settings = JSON.stringify(one)
        const present = posts.get(one.name)
        next.set(one.name, present?.settings === settings ? present : open(one, settings))
      }
      const gone = [...posts.values()].filter((post) => next.get(post.name) !== post)
      posts = next
      for (const post of gone) {
        retired.add(post)
        await closeIfIdle(post)
      }
    },

    find: (name: string): Post | undefined => posts.get(name),

    /** Keeps a provider from being closed under somebody's hands. */
    async use<T>(post: Post, work: () => Promise<T>): Promise<T> {
      post.inFlight++
      try {
        return await work()
      } finally {
        post.inFlight--
        await closeIfIdle(post)
      }
    },

    async close(): Promise<void> {
      const all = [...posts.values(), ...retired]
      posts = new Map()
      retired.clear()
      await Promise.allSettled(all.map(({ provider }) => provider.close?.()))
    },
  }
}
