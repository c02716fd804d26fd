import type { ProviderRefusal } from '../domain/otp/provider-status.ts'

/** Messages that a developer sees for each provider. */
const keptPerDeveloper = 10
/** Developers whose messages are kept, those with the newest ones. */
const developersMax = 200

export type RecentRefusals = ReturnType<typeof createRecentRefusals>

/** Keeps the newest messages that a provider did not accept, in memory: they are for looking, and requests have them all. */
export function createRecentRefusals() {
  /** The least recent developer first; the newest message first. */
  const byDeveloper = new Map<string, ProviderRefusal[]>()

  return {
    add(developerId: string, refusal: ProviderRefusal): void {
      const own = byDeveloper.get(developerId) ?? []
      byDeveloper.delete(developerId)
      byDeveloper.set(developerId, [refusal, ...own].slice(0, keptPerDeveloper))
      const [oldest] = byDeveloper.keys()
      if (byDeveloper.size > developersMax && oldest !== undefined) byDeveloper.delete(oldest)
    },

    /** Lists those of a developer, newest first. */
    list: (developerId: string): readonly ProviderRefusal[] => byDeveloper.get(developerId) ?? [],
  }
}
