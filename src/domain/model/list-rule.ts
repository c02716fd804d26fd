export const ruleEffects = ['allow', 'deny'] as const
type RuleEffect = (typeof ruleEffects)[number]

export const ruleTargets = ['phone', 'prefix', 'country', 'network'] as const
export type RuleTarget = (typeof ruleTargets)[number]

/** A rule with which a developer allows or denies messages to a destination, or from a network. */
export type ListRule = {
  id: string
  effect: RuleEffect
  target: RuleTarget
  /** E.164 number or the beginning of one with `+`, ISO code of a country, or CIDR. */
  value: string
  /** Null: all applications of the developer. */
  appId: string | null
  createdAt: number
  /** Null: never. */
  expiresAt: number | null
}

/** Verdict of a developer's rules on a message. */
export type Listing = {
  isDenied: boolean
  /** The kind of rule that allows it: a phone named exactly, another destination, or a network. Null if none does. */
  allowedBy: 'phone' | 'destination' | 'network' | null
}

/** Bounds what a send looks through, and what one developer can store. */
export const listRulesMax = 1_000
